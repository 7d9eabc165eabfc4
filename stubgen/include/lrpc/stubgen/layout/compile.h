// From the text of an interface file to the checked interface: for the generator, and for who calls without stubs.
#pragma once

#include <cstdint>
#include <optional>

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Where a declaration comes from: a file that code is generated from, or a server that has exported it. What it has
/// exported does not say in which C++ namespace the code of its file is: names that are free in some are taken for free.
enum class Origin : std::uint8_t { file, server };

/// Parses, checks and lays out. nullopt if there was any error; warnings alone do not stop it. Deterministic, and
/// bounded in work and memory whatever the bytes of `source` are.
[[nodiscard]] std::optional<Interface> compile(const Source& source, Diagnostics& diagnostics,
                                               Origin origin = Origin::file);

}  // namespace lrpc::stubgen
