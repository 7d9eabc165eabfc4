// Time as the graph sees it: the machine's, or a simulation's.
#pragma once

#include <time.h>

#include <chrono>

#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::netrpc {

using Duration = std::chrono::nanoseconds;
/// Time since some fixed moment of the host: the times of two hosts are not comparable.
using Time = std::chrono::nanoseconds;

/// When a `timeout` that begins at `now` is over. For kNoLimit: Time::max(), which is never.
[[nodiscard]] constexpr Time deadline_after(Time now, Duration timeout) noexcept {
  return timeout < Time::max() - now ? now + timeout : Time::max();
}

/// Injected, so that the same protocol objects can run in virtual time.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Time now() const noexcept = 0;
};

/// CLOCK_BOOTTIME: a host that was suspended must know for how long it was silent.
class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override {
    timespec now{};
    (void)::clock_gettime(CLOCK_BOOTTIME, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
  }
};

}  // namespace lrpc::netrpc
