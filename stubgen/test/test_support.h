// Helpers for the unit tests of the generator.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "emit/generator.h"
#include "lrpc/stubgen/language/source.h"

namespace lrpc::stubgen::test {

/// The outcome of compiling a text: an interface, or diagnostics whose lines begin with "t:".
struct Compiled {
  std::optional<Interface> interface;
  std::string diagnostics;
  std::size_t errors = 0;

  [[nodiscard]] bool says(std::string_view text) const { return diagnostics.find(text) != std::string::npos; }
  [[nodiscard]] const Procedure& procedure(std::string_view name) const {
    return *std::find_if(interface->procedures.begin(), interface->procedures.end(),
                         [&](const Procedure& procedure) { return procedure.name == name; });
  }
  [[nodiscard]] const Type& type(std::string_view name) const {
    return **std::find_if(interface->types.begin(), interface->types.end(),
                          [&](const auto& type) { return type->name == name; });
  }
};

inline Compiled compile_text(std::string text) {
  Diagnostics diagnostics;
  const Source source{"t", std::move(text)};
  Compiled compiled;
  compiled.interface = compile(source, diagnostics);
  compiled.diagnostics = diagnostics.text("t");
  compiled.errors = diagnostics.errors();
  return compiled;
}

/// Compiles `body` as the declarations of an interface; line 1 is the interface's own.
inline Compiled compile_body(std::string_view body) {
  return compile_text("interface T version 1.0 {\n" + std::string(body) + "\nprocedure Last(); }");
}

}  // namespace lrpc::stubgen::test
