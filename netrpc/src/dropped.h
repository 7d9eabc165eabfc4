// Counts dropped messages.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// For the line that drops a message: `return dropped(counted.malformed);`.
inline void dropped(std::uint64_t& counter) noexcept { ++counter; }

}  // namespace lrpc::netrpc
