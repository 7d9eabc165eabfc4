// What holds for the calls that a thread makes: by when they must be over, and who may end them before.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "lrpc/detail/shim/call/calling_thread.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::shim {

/// A moment that is asked for often: told by ticks(), which costs a few instructions, and set right by the clock, at
/// the rate that ticks have had since the process measured it first, whenever that was longer ago than kTrusted. So
/// neither that first measurement nor a counter that jumps does harm. Belongs to one thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  /// What is left of no deadline at all, in ns.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// The most that is believed: of what a peer says, and of what a program asks for.
  static constexpr std::int64_t kMost = std::chrono::nanoseconds(std::chrono::hours(24 * 366)).count();
  /// `timeout`, at most kMost: what the clock can tell. Compared before it is converted, for ns hold no 300 years.
  [[nodiscard]] static constexpr std::chrono::nanoseconds span(std::chrono::milliseconds timeout) noexcept {
    constexpr std::chrono::nanoseconds most(kMost);
    return timeout < std::chrono::duration_cast<std::chrono::milliseconds>(most) ? timeout : most;
  }
  static constexpr std::uint64_t kTrustedUs = 10'000;

  /// Never.
  Deadline() noexcept = default;
  /// At `until`; time_point::max() is never.
  explicit Deadline(Clock::time_point until) noexcept {
    if (until == Clock::time_point::max()) return;
    measure();
    until_ = std::max(until, Clock::time_point());  // the clock's beginning: long past, and no overflow
    known_ = true;
    (void)look_at_clock();
  }

  /// For calls of peers, of which each begin()s it anew.
  struct OfPeers {};
  explicit Deadline(OfPeers /*tag*/) noexcept {
    measure();
    note_clock();
  }
  /// In `left` ns from `now`, without a look at the clock. What a peer has said: over kMost is kMost, to whoever asks
  /// left() or until(). Precondition: made OfPeers, or at a time.
  void begin(std::uint64_t left, std::uint64_t now = ticks()) noexcept {
    since_ = now;
    left_ = static_cast<std::int64_t>(left);
    known_ = false;
  }

  [[nodiscard]] bool ever() const noexcept { return trusted_ != 0; }
  /// Nanoseconds that are left; not above zero: it is over. kNever without a deadline.
  [[nodiscard]] std::int64_t left() noexcept {
    if (!ever()) return kNever;
    const std::uint64_t passed = ticks() - since_;
    if (passed > trusted_) [[unlikely]]
      return look_at_clock();
    return left_at_since() - static_cast<std::int64_t>(passed * scale_ >> 32);
  }
  /// For the call path: the same where ticks() alone can tell, and something is left. Else, and after ask_always(), 0:
  /// ask left(). Of what a peer has said it may be more than kMost, for another peer to cut.
  [[nodiscard]] std::int64_t left_by_ticks() const noexcept {
    const std::uint64_t passed = ticks() - since_;
    if (passed >= told_by_ticks_) [[unlikely]]
      return 0;
    const auto ns = static_cast<std::int64_t>(passed * scale_ >> 32);
    return left_ > ns ? left_ - ns : 0;
  }
  /// Now and then, before begin(): a look at the clock. A counter that jumps between begin() and the first look at the
  /// clock is found out by what the clock says since this look, or since an earlier one of left(): a jump of 3 ms for
  /// each second since then.
  void note_clock() noexcept;
  /// The same if the last look is a second old.
  void note_clock(Moment now) noexcept {
    if (now.since(looked_tick_) >= kNoteUs) note_clock();
  }
  /// From now on left_by_ticks() is 0.
  void ask_always() noexcept { told_by_ticks_ = 0; }
  /// By the clock; time_point::max() is never.
  [[nodiscard]] Clock::time_point until() noexcept;

 private:
  void measure() noexcept {
    trusted_ = told_by_ticks_ = kTrustedUs * ticks_per_microsecond();
    scale_ = static_cast<std::uint64_t>(nanoseconds_per_tick() * 0x1p32);
  }
  static constexpr std::uint64_t kNoteUs = 1'000'000;

  std::int64_t look_at_clock() noexcept;
  [[nodiscard]] double passed_since_begin(std::uint64_t tick, Clock::time_point now, double rate) const noexcept;
  [[nodiscard]] std::int64_t left_at_since() const noexcept {
    return known_ ? left_
                  : static_cast<std::int64_t>(std::min(static_cast<std::uint64_t>(left_), std::uint64_t{kMost}));
  }

  std::int64_t left_ = 0;            ///< ns, at since_. Unless known_: what a peer has said, whatever it is.
  std::uint64_t since_ = 0;          ///< ticks()
  std::uint64_t told_by_ticks_ = 0;  ///< trusted_, or 0: ask_always().
  std::uint64_t scale_ = 0;          ///< ns a tick, times 2^32.
  std::uint64_t trusted_ = 0;        ///< ticks() after since_ for which they are believed; 0: never over.
  Clock::time_point until_{};        ///< By the clock, if known_.
  bool known_ = false;
  std::uint64_t looked_tick_ = 0;  ///< ticks(), and by the clock, at the last look at both.
  Clock::time_point looked_at_{};
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
class CallLimits {
 public:
  CallLimits() noexcept = default;
  explicit CallLimits(Deadline only) noexcept : deadline(only) {}

  /// Null: none.
  [[nodiscard]] const std::shared_ptr<const Cancellations>& cancellations() const noexcept { return cancellations_; }
  /// After the deadline has been set: one look at that tells the call path that there is more to look at.
  void set_cancellations(std::shared_ptr<const Cancellations> cancellations) noexcept {
    cancellations_ = std::move(cancellations);
    if (cancellations_ != nullptr) deadline.ask_always();
  }

  Deadline deadline;

 private:
  std::shared_ptr<const Cancellations> cancellations_;
};

}  // namespace lrpc::shim
