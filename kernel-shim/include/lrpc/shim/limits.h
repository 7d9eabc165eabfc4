// What holds for the calls that a thread makes: by when they must be over, and who may end them before.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>

#include "lrpc/shim/processor.h"

namespace lrpc::shim {

/// A moment that is asked for often: told by ticks(), which costs a few instructions, and set right by the clock
/// whenever that was longer ago than kTrusted, so that neither a rate that was measured badly nor a counter that jumps
/// does harm. Belongs to one thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  /// What is left of no deadline at all, in ns.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// The most that is believed: of what a peer says, and of what a program asks for.
  static constexpr std::int64_t kMost = std::chrono::nanoseconds(std::chrono::hours(24 * 366)).count();
  static constexpr std::uint64_t kTrustedUs = 10'000;

  /// Never.
  Deadline() noexcept
      : trusted_(kTrustedUs * ticks_per_microsecond()), scale_((1000ULL << 32) / ticks_per_microsecond()) {}
  /// At `until`; time_point::max() is never.
  explicit Deadline(Clock::time_point until) noexcept : Deadline() {
    if (until == Clock::time_point::max()) return;
    until_ = std::max(until, Clock::time_point());  // the clock's beginning: long past, and no overflow
    known_ = true;
    (void)look_at_clock();
  }

  /// In `left` ns from now, without a look at the clock. What a peer has said: over kMost is kMost.
  void begin(std::uint64_t left) noexcept {
    since_ = ticks();
    left_ = static_cast<std::int64_t>(std::min<std::uint64_t>(left, kMost));
    known_ = false;
  }

  [[nodiscard]] bool ever() const noexcept { return left_ != kNever; }
  /// Nanoseconds that are left; not above zero: it is over. kNever without a deadline.
  [[nodiscard]] std::int64_t left() noexcept {
    if (left_ == kNever) return kNever;
    const std::uint64_t passed = ticks() - since_;
    if (passed > trusted_) [[unlikely]]
      return look_at_clock();
    return left_ - static_cast<std::int64_t>(passed * scale_ >> 32);
  }
  /// By the clock; time_point::max() is never.
  [[nodiscard]] Clock::time_point until() noexcept;

 private:
  std::int64_t look_at_clock() noexcept;

  std::int64_t left_ = kNever;  ///< ns, at since_.
  std::uint64_t since_ = 0;     ///< ticks()
  std::uint64_t trusted_;       ///< ticks() after since_ for which they are believed.
  std::uint64_t scale_;         ///< ns a tick, times 2^32.
  Clock::time_point until_{};   ///< By the clock, if known_.
  bool known_ = false;
};

/// Whether calls were cancelled: 0, then 1 for good. A futex word of this process.
struct CancellationWord {
  std::atomic<std::uint32_t> cancelled{0};
};

/// The cancellations that hold for a call, innermost first. Constant.
struct Cancellations {
  std::shared_ptr<CancellationWord> word;
  std::shared_ptr<const Cancellations> around;
};

/// Whether one of them has come.
[[nodiscard]] bool cancelled(const Cancellations* cancellations) noexcept;

/// All that holds for the calls of a thread just now; what an outer scope says is in it. Belongs to the thread.
struct CallLimits {
  Deadline deadline;
  std::shared_ptr<const Cancellations> cancellations;
};

/// The calling thread's; null: none. Set by scopes at the client and, to what its caller has left, around a procedure at
/// the server: so deadlines pass on by themselves. Whoever sets it puts it back.
extern constinit thread_local CallLimits* thread_limits;

}  // namespace lrpc::shim
