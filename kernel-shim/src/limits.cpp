#include "lrpc/shim/limits.h"

namespace lrpc::shim {

constinit thread_local CallingThread calling_thread;

std::int64_t Deadline::look_at_clock() noexcept {
  const Clock::time_point now = Clock::now();
  const std::uint64_t tick = ticks();
  if (!known_) {
    const double passed = tick > since_ ? static_cast<double>(tick - since_) * static_cast<double>(scale_) / 0x1p32 : 0;
    until_ = now + std::chrono::nanoseconds(left_at_since() - static_cast<std::int64_t>(std::min(passed, 1e18)));
    known_ = true;
  }
  since_ = tick;
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
