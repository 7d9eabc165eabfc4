// Names that the C library has taken, by its macros or in the global namespace.
#pragma once

#include <string_view>

namespace lrpc::stubgen {

/// True for a macro that the generated headers bring along, or that a program's other headers often do. Wherever the
/// generated code has such a name, the preprocessor replaces it.
[[nodiscard]] bool is_macro(std::string_view name);

}  // namespace lrpc::stubgen
