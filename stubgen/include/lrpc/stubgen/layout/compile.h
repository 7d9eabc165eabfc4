// From the text of an interface file to the checked interface: for the generator, and for programs that call without
// stubs.
#pragma once

#include <cstdint>
#include <optional>

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Where a declaration comes from: a file that code is generated from, or a server that has exported it. An exported
/// one does not name its C++ namespace. So a name counts as free in it if it is free in some namespace.
enum class Origin : std::uint8_t { file, server };

/// Parses, checks and lays out. nullopt if there was any error; warnings alone do not stop it. Deterministic, and
/// bounded in work and memory whatever the bytes of `source` are.
[[nodiscard]] std::optional<Interface> compile(const Source& source, Diagnostics& diagnostics,
                                               Origin origin = Origin::file);

}  // namespace lrpc::stubgen
