// What is dropped is counted.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// For the last line about a message: `return dropped(counted.malformed);`.
inline void dropped(std::uint64_t& counter) noexcept { ++counter; }

}  // namespace lrpc::netrpc
