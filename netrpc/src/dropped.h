// Counts dropped messages.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// For the line that drops a message: `return dropped(counted.malformed);`.
inline void dropped(std::uint64_t& counter) noexcept { ++counter; }
/// The same where a result is expected: `return dropped(counted.malformed, nullptr);`.
template <class T>
[[nodiscard]] T dropped(std::uint64_t& counter, T result) noexcept {
  ++counter;
  return result;
}

}  // namespace lrpc::netrpc
