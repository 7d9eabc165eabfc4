// ast::Interface to Interface: looks names up, checks numbers, and reports mistakes in the file's own terms.
#pragma once

#include <optional>

#include "lrpc/stubgen/language/ast.h"
#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/compile.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// nullopt if there was any error. The result has no offsets yet: see layout.h.
[[nodiscard]] std::optional<Interface> check(const ast::Interface& file, Diagnostics& diagnostics, Origin origin);

}  // namespace lrpc::stubgen
