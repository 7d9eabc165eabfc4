// Time in processor ticks, and how long a tick is.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include "arch_x86_64.h"
#else
#include "arch_generic.h"
#endif

namespace lrpc::bench {

/// The time of a kernel clock, in nanoseconds.
inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

/// How long `body()` takes.
template <class Body>
std::uint64_t ticks_of(Body&& body) {
  const std::uint64_t before = ticks_begin();
  body();
  return ticks_end() - before;
}

/// Keeps the processor busy for that many ticks.
inline void compute_for(std::uint64_t ticks) noexcept {
  const std::uint64_t begun = ticks_begin();
  while (ticks_begin() - begun < ticks) relax();
}

/// Converts ticks to nanoseconds; measured once per program against CLOCK_MONOTONIC_RAW.
class TickClock {
 public:
  /// Takes about 20 ms.
  static TickClock calibrate();

  [[nodiscard]] double ns(std::uint64_t ticks) const noexcept { return static_cast<double>(ticks) * ns_per_tick_; }
  [[nodiscard]] std::uint64_t ticks(std::chrono::nanoseconds time) const noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(time.count()) / ns_per_tick_);
  }
  /// Median of the ticks between ticks_begin() and ticks_end() with nothing in between: what timing adds to a call.
  [[nodiscard]] std::uint64_t overhead() const noexcept { return overhead_; }

 private:
  double ns_per_tick_ = 1;
  std::uint64_t overhead_ = 0;
};

}  // namespace lrpc::bench
