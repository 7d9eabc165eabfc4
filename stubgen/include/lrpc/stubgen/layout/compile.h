// From the text of an interface file to the checked interface: for the generator, and for who calls without stubs.
#pragma once

#include <optional>

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Parses, checks and lays out. nullopt if there was any error; warnings alone do not stop it. Deterministic, and
/// bounded in work and memory whatever the bytes of `source` are.
[[nodiscard]] std::optional<Interface> compile(const Source& source, Diagnostics& diagnostics);

}  // namespace lrpc::stubgen
