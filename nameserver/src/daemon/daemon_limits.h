// What a daemon's descriptors are enough for.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// `limits` with fewer connections, binds and descriptors in flight if all of them at once would take more than
/// `descriptors`: out of descriptors a nameserver can accept nobody, root neither.
[[nodiscard]] Limits within_descriptors(Limits limits, std::uint64_t descriptors) noexcept;

/// What the administrator should know of `limits` that leave room for few; else nothing. `descriptors`: the limit that
/// made them so.
[[nodiscard]] std::string few_descriptors(const Limits& limits, std::uint64_t descriptors);

}  // namespace lrpc::nameserver
