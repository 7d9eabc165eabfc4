// Names that are taken before the generated code begins: C++'s keywords, the C library's macros and globals, and those
// in lrpc.
#pragma once

#include <string_view>

namespace lrpc::stubgen {

/// True for a word of C++.
[[nodiscard]] bool is_keyword(std::string_view name);

/// True for a macro that the generated headers bring along, or that a program's other headers often do. Wherever the
/// generated code has such a name, the preprocessor replaces it.
[[nodiscard]] bool is_macro(std::string_view name);

/// True for what the C library, or main(), has in the global namespace: no namespace there can have this name.
[[nodiscard]] bool is_global_name(std::string_view name);

/// The same for namespace lrpc: what the runtime's headers declare in it, but for namespaces.
[[nodiscard]] bool is_runtime_name(std::string_view name);

}  // namespace lrpc::stubgen
