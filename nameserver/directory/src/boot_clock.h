// The clock by which leases and answers age.
#pragma once

#include <time.h>

#include <chrono>

namespace lrpc::directory {

/// CLOCK_BOOTTIME: while this machine is suspended, etcd's leases expire, and what it has said gets old.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;

  [[nodiscard]] static time_point now() noexcept {
    timespec now{};
    (void)::clock_gettime(CLOCK_BOOTTIME, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

}  // namespace lrpc::directory
