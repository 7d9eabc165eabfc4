#include "lrpc/detail/shim/system/processor.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <new>

namespace lrpc::shim {
namespace {

struct Reading {
  std::uint64_t tick = 0;
  std::chrono::steady_clock::time_point time;
  std::uint64_t apart = std::numeric_limits<std::uint64_t>::max();  ///< Ticks that reading the clock took.
};

struct Calibration {
  std::uint64_t ticks_per_us = 1;
  std::uint32_t poll_delays_per_us = 1;
  double ns_per_tick = 1;
  Reading begin;
};

/// Reads ticks and clock together: the closest of a few tries, because the thread may be switched out in between.
Reading read_together() noexcept {
  Reading closest;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = ticks();
    const auto now = std::chrono::steady_clock::now();
    const std::uint64_t apart = ticks() - before;
    if (apart < closest.apart) closest = {.tick = before + apart / 2, .time = now, .apart = apart};
  }
  return closest;
}

/// Whether the readings are so far apart that their errors together are at most a five-hundredth of the time between
/// them: each may be wrong by half of the time that it took, and by a tick. With a counter of some GHz that takes about
/// 20 us. A millisecond is always enough, however slow the counter or the clock is.
bool long_enough(const Reading& first, const Reading& last) noexcept {
  constexpr std::uint64_t kParts = 500;
  return last.time - first.time >= std::chrono::milliseconds(1) ||
         (last.tick - first.tick) / kParts >= (first.apart + last.apart) / 2 + 2;
}

Calibration calibrate() noexcept {
  constexpr std::uint64_t kPolls = 200;
  const Reading first = read_together();
  Reading last = first;
  // The shortest of a few tries: a try that was switched out is longer, never shorter.
  std::uint64_t shortest = std::numeric_limits<std::uint64_t>::max();
  for (int i = 0; i < 4 || !long_enough(first, last); ++i) {
    const std::uint64_t begin = ticks();
    for (std::uint64_t n = 0; n < kPolls; ++n) poll_delay();
    shortest = std::min(shortest, ticks() - begin);
    last = read_together();
  }
  const auto ns =
      static_cast<double>(std::max<std::int64_t>(1, std::chrono::nanoseconds(last.time - first.time).count()));
  const auto passed = static_cast<double>(last.tick > first.tick ? last.tick - first.tick : 1);
  const auto ticks_per_us = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(passed * 1000 / ns)));
  const auto delays_per_us = std::max<std::uint64_t>(1, kPolls * ticks_per_us / std::max<std::uint64_t>(1, shortest));
  return {.ticks_per_us = ticks_per_us,
          .poll_delays_per_us = static_cast<std::uint32_t>(delays_per_us),
          .ns_per_tick = ns / passed,
          .begin = first};
}

/// Never freed.
constinit std::atomic<const Calibration*> calibration_now{nullptr};

/// Not a static that the first caller initialises: a child forked while another thread does that would wait for that
/// thread for ever. So several threads may measure at first, and the first result is kept. Without memory, none is.
Calibration calibration() noexcept {
  const Calibration* now = calibration_now.load(std::memory_order_acquire);
  if (now != nullptr) return *now;
  const Calibration measured = calibrate();
  std::unique_ptr<const Calibration> made(new (std::nothrow) Calibration(measured));
  if (made == nullptr) return measured;
  if (calibration_now.compare_exchange_strong(now, made.get(), std::memory_order_acq_rel)) now = made.release();
  return *now;
}

}  // namespace

std::uint64_t ticks_per_microsecond() noexcept { return calibration().ticks_per_us; }
std::uint32_t poll_delays_per_microsecond() noexcept { return calibration().poll_delays_per_us; }
double nanoseconds_per_tick() noexcept { return calibration().ns_per_tick; }

double nanoseconds_per_tick(std::uint64_t tick, std::chrono::steady_clock::time_point now) noexcept {
  const Calibration then = calibration();
  const std::int64_t ns = std::chrono::nanoseconds(now - then.begin.time).count();
  return rate_between(then.ns_per_tick, ns, then.begin.tick, tick);
}

double rate_between(double first, std::int64_t ns, std::uint64_t from, std::uint64_t to) noexcept {
  if (ns <= 0 || to <= from) return first;
  const double rate = static_cast<double>(ns) / static_cast<double>(to - from);
  return rate > first * (1 - kRateTolerance) && rate < first * (1 + kRateTolerance) ? rate : first;
}

std::uint64_t thread_microseconds() noexcept {
  timespec used{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(used.tv_nsec) / 1'000;
}

std::uint64_t involuntary_switches() noexcept {
  rusage usage{};
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_nivcsw) : 0;
}

bool move_to_processor(std::uint16_t processor) noexcept {
  if (!is_processor(processor)) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

}  // namespace lrpc::shim
