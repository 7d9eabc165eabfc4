#include "lrpc/shim/call/limits.h"

namespace lrpc::shim {

constinit thread_local CallingThread calling_thread;

static constexpr std::uint64_t kTogetherUs = 5;

std::int64_t Deadline::look_at_clock() noexcept {
  // The clock, between two looks at the ticks; again if we were interrupted there, so that they belong together.
  const std::uint64_t tolerable = kTogetherUs * ticks_per_microsecond();
  std::uint64_t tick = ticks();
  Clock::time_point now = Clock::now();
  std::uint64_t after = ticks();
  for (int i = 0; i < 3 && after - tick > tolerable; ++i) {
    tick = ticks();
    now = Clock::now();
    after = ticks();
  }
  // However long ago it began: the rate that was measured first would be wrong by milliseconds a second.
  const double rate = nanoseconds_per_tick(tick, now);
  scale_ = static_cast<std::uint64_t>(rate * 0x1p32);
  if (!known_) {
    const double passed = tick > since_ ? static_cast<double>(tick - since_) * rate : 0;
    until_ = now + std::chrono::nanoseconds(left_at_since() - static_cast<std::int64_t>(std::min(passed, 1e18)));
    known_ = true;
  }
  since_ = after;  // what is told wrong is told late, for nobody is to hear of an end too early
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
