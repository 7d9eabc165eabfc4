#include "ticks.h"

#include <algorithm>
#include <vector>

namespace lrpc::bench {
namespace {

/// Both clocks at the same moment, taken from the quickest of several readings.
struct Moment {
  std::uint64_t ticks = 0;
  std::uint64_t ns = 0;
};
Moment read_both() {
  Moment best;
  std::uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 32; ++i) {
    const std::uint64_t before = ticks_begin();
    const std::uint64_t ns = clock_ns(CLOCK_MONOTONIC_RAW);
    const std::uint64_t after = ticks_end();
    if (after - before >= best_width) continue;
    best_width = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

}  // namespace

TickClock TickClock::calibrate() {
  const Moment first = read_both();
  while (clock_ns(CLOCK_MONOTONIC_RAW) - first.ns < 20'000'000) relax();
  const Moment last = read_both();
  TickClock clock;
  clock.ns_per_tick_ = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);

  std::vector<std::uint64_t> empty(1001);
  for (auto& sample : empty) {
    const std::uint64_t before = ticks_begin();
    sample = ticks_end() - before;
  }
  std::nth_element(empty.begin(), empty.begin() + 500, empty.end());
  clock.overhead_ = empty[500];
  return clock;
}

}  // namespace lrpc::bench
