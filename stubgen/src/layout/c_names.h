// Names that the generated code cannot use because others have them: C++'s keywords, the C library's macros and
// globals, and names in namespace lrpc.
#pragma once

#include <string_view>

namespace lrpc::stubgen {

/// True for a keyword of C++.
[[nodiscard]] bool is_keyword(std::string_view name);

/// True for a macro that the generated headers include, or that a program's other headers often include. The
/// preprocessor would replace such a name in the generated code.
[[nodiscard]] bool is_macro(std::string_view name);

/// True for a name that the C library, or main(), has in the global namespace: no namespace there can have it.
[[nodiscard]] bool is_global_name(std::string_view name);

/// The same for namespace lrpc: what the runtime's headers declare in it, except namespaces.
[[nodiscard]] bool is_runtime_name(std::string_view name);

}  // namespace lrpc::stubgen
