#include "lrpc/detail/shim/call/limits.h"

#include <cmath>

namespace lrpc::shim {

constinit thread_local CallingThread calling_thread;

namespace {

constexpr std::uint64_t kTogetherUs = 5;
/// By which part of the time since the last look ticks and clock may differ: the first measurement of the rate is wrong
/// by up to a five-hundredth, and NTP slews a clock by up to half a thousandth.
constexpr double kApart = 3e-3;

/// A reading of the clock between two readings of the ticks.
struct BothClocks {
  std::uint64_t before = 0;
  Deadline::Clock::time_point now;
  std::uint64_t after = 0;
};

/// Repeats the readings if we were interrupted between them.
BothClocks look_at_both() noexcept {
  const std::uint64_t tolerable = kTogetherUs * ticks_per_microsecond();
  BothClocks both;
  for (int i = 0; i < 4; ++i) {
    both.before = ticks();
    both.now = Deadline::Clock::now();
    both.after = ticks();
    if (both.after - both.before <= tolerable) break;
  }
  return both;
}

double ns_between(std::uint64_t from, std::uint64_t to, double rate) noexcept {
  return to > from ? static_cast<double>(to - from) * rate : 0;
}

}  // namespace

void Deadline::note_clock() noexcept {
  const BothClocks both = look_at_both();
  looked_tick_ = both.after;
  looked_at_ = both.now;
}

/// In ns, by the ticks, which are more precise. If the clock, read before begin(), disagrees, the ticks have jumped
/// since: then the smaller time counts, so that nobody hears of an end too early.
double Deadline::passed_since_begin(std::uint64_t tick, Clock::time_point now, double rate) const noexcept {
  const double by_ticks = ns_between(since_, tick, rate);
  const auto since_look = static_cast<double>(std::chrono::nanoseconds(now - looked_at_).count());
  const double by_clock = std::max(since_look - ns_between(looked_tick_, since_, rate), 0.0);
  return std::abs(by_ticks - by_clock) > since_look * kApart ? std::min(by_ticks, by_clock) : by_ticks;
}

std::int64_t Deadline::look_at_clock() noexcept {
  const auto [tick, now, after] = look_at_both();
  // Measured over all the time since the calibration: the rate measured first may be wrong by milliseconds a second.
  const double rate = nanoseconds_per_tick(tick, now);
  scale_ = static_cast<std::uint64_t>(rate * 0x1p32);
  if (!known_) {
    const double passed = passed_since_begin(tick, now, rate);
    until_ = now + std::chrono::nanoseconds(left_at_since() - static_cast<std::int64_t>(std::min(passed, 1e18)));
    known_ = true;
  }
  looked_at_ = now;
  since_ = looked_tick_ = after;  // an error here makes the end late, never early
  left_ = std::chrono::nanoseconds(until_ - now).count();
  return left_;
}

Deadline::Clock::time_point Deadline::until() noexcept {
  if (!ever()) return Clock::time_point::max();
  if (!known_) (void)look_at_clock();
  return until_;
}

bool cancelled(const Cancellations* cancellations) noexcept {
  for (; cancellations != nullptr; cancellations = cancellations->around.get()) {
    if (cancellations->word->cancelled.load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

}  // namespace lrpc::shim
