// What the benches need of a processor, for architectures without a file of their own: a tick is a nanosecond of the
// kernel's clock.
#pragma once

#include <time.h>

#include <cstdint>

namespace lrpc::bench {

inline std::uint64_t ticks_begin() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}
inline std::uint64_t ticks_end() noexcept { return ticks_begin(); }
inline void relax() noexcept {}

}  // namespace lrpc::bench
