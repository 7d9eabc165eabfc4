// Which names an interface may use: the generated code must compile, and be readable, with each of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "lrpc/stubgen/language/ast.h"
#include "lrpc/stubgen/language/source.h"

namespace lrpc::stubgen {

/// What a name is used for. This decides which names are refused.
enum class NameUse : std::uint8_t {
  space,  ///< An interface's namespace, or one around it.
  type,
  procedure,
  member,  ///< A field, parameter, result or enum value, each in a scope of its own.
};

/// Reports a name that no C++ program could use, or that would hide a name which the generated code needs. True if the
/// name is fine.
bool check_name(const ast::Name& name, NameUse use, Diagnostics& diagnostics);

/// Reports a namespace, `a::b`, that C++ or the generated code cannot have around an interface. True if it is fine.
bool check_namespace(std::string_view value, Location at, Diagnostics& diagnostics);
/// Reports a name that cannot be a namespace in `around`, which is the global one if it is empty. True if it is free.
bool check_free(std::string_view around, const ast::Name& name, Diagnostics& diagnostics);

/// One scope of names.
class Scope {
 public:
  explicit Scope(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// Enters a name that the file declares. False, with a diagnostic, if check_name() refuses it or if it is taken.
  bool declare(const ast::Name& name, NameUse use);

 private:
  std::map<std::string, Location, std::less<>> taken_;
  Diagnostics& diagnostics_;
};

}  // namespace lrpc::stubgen
