// The canonical text of an interface: two domains that were built separately compare its hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// The declaration without comments, its options and defaults spelled out. It is an interface file itself, and its own
/// canonical text. The namespace is left out, because it changes no layout.
[[nodiscard]] std::string canonical_text(const Interface& interface);

/// FNV-1a, 64 bits.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text);

}  // namespace lrpc::stubgen
