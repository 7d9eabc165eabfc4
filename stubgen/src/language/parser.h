// Tokens to ast::Interface, with recovery at ';' and '}' so that one run reports every mistake.
#pragma once

#include <optional>

#include "lrpc/stubgen/language/ast.h"
#include "lrpc/stubgen/language/source.h"

namespace lrpc::stubgen {

/// Parses one interface file. nullopt if no interface could be read; otherwise what could be read. Mistakes are in
/// `diagnostics`. Never recurses: nesting in the text costs no stack.
[[nodiscard]] std::optional<ast::Interface> parse(const Source& source, Diagnostics& diagnostics);

}  // namespace lrpc::stubgen
