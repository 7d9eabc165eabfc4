// Limits that fit the number of a daemon's descriptors.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// `limits` with fewer connections, binds and descriptors in flight if all of them at once would take more than
/// `descriptors`: a nameserver without free descriptors can accept nobody, not even root.
[[nodiscard]] Limits within_descriptors(Limits limits, std::uint64_t descriptors) noexcept;

/// A warning for the administrator if `limits` allow few connections; otherwise empty. `descriptors`: the limit that
/// caused this.
[[nodiscard]] std::string few_descriptors(const Limits& limits, std::uint64_t descriptors);

}  // namespace lrpc::nameserver
