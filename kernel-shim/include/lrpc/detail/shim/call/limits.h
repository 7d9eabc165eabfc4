// The limits of the calls that a thread makes: their deadline, and the cancellations that may end them earlier.
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

/// A deadline that is asked for often. ticks() tells the time that is left, in a few instructions. If the last look at
/// the clock is older than kTrustedUs, the clock corrects that time, and the rate of the ticks. So neither an inexact
/// first measurement of the rate nor a counter that jumps does harm. Belongs to one thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  /// left() of no deadline, in ns.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// The longest timeout that is accepted, from a peer or from a program, in ns.
  static constexpr std::int64_t kMost = std::chrono::nanoseconds(std::chrono::hours(24 * 366)).count();
  /// `timeout`, but at most kMost. Compared before it is converted: 64 bits of ns hold less than 300 years.
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
    until_ = std::max(until, Clock::time_point());  // not before the clock's beginning: no overflow
    known_ = true;
    (void)look_at_clock();
  }

  /// For calls from peers: each call starts it by begin().
  struct OfPeers {};
  explicit Deadline(OfPeers /*tag*/) noexcept {
    measure();
    note_clock();
  }
  /// The deadline is `left` ns after `now`; the clock is not read. `left` comes from a peer: left() and until() take
  /// more than kMost as kMost. Precondition: made OfPeers, or at a time.
  void begin(std::uint64_t left, std::uint64_t now = ticks()) noexcept {
    since_ = now;
    left_ = static_cast<std::int64_t>(left);
    known_ = false;
  }

  [[nodiscard]] bool ever() const noexcept { return trusted_ != 0; }
  /// Nanoseconds that are left; zero or less: the deadline has passed. kNever without a deadline.
  [[nodiscard]] std::int64_t left() noexcept {
    if (!ever()) return kNever;
    const std::uint64_t passed = ticks() - since_;
    if (passed > trusted_) [[unlikely]]
      return look_at_clock();
    return left_at_since() - static_cast<std::int64_t>(passed * scale_ >> 32);
  }
  /// For the call path: the same, if ticks() alone can tell it and time is left. Otherwise, and after ask_always(), 0:
  /// ask left(). A peer's value may exceed kMost here: the next peer cuts it.
  [[nodiscard]] std::int64_t left_by_ticks() const noexcept {
    const std::uint64_t passed = ticks() - since_;
    if (passed >= told_by_ticks_) [[unlikely]]
      return 0;
    const auto ns = static_cast<std::int64_t>(passed * scale_ >> 32);
    return left_ > ns ? left_ - ns : 0;
  }
  /// Reads the clock; call it now and then, before begin(). The first look at the clock after begin() is compared with
  /// this one (or with one by left(), if later). So a counter that has jumped in between is noticed, if by more than 3
  /// ms for each second since this look.
  void note_clock() noexcept;
  /// The same, if the last look is at least a second old.
  void note_clock(Moment now) noexcept {
    if (now.since(looked_tick_) >= kNoteUs) note_clock();
  }
  /// Makes left_by_ticks() return 0.
  void ask_always() noexcept { told_by_ticks_ = 0; }
  /// The deadline by the clock; time_point::max(): never.
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

  std::int64_t left_ = 0;            ///< ns, at since_. Unless known_: a peer's value, unchecked.
  std::uint64_t since_ = 0;          ///< ticks()
  std::uint64_t told_by_ticks_ = 0;  ///< trusted_, or 0: ask_always().
  std::uint64_t scale_ = 0;          ///< ns a tick, times 2^32.
  std::uint64_t trusted_ = 0;        ///< ticks() after since_ for which they are trusted; 0: no deadline.
  Clock::time_point until_{};        ///< By the clock, if known_.
  bool known_ = false;
  std::uint64_t looked_tick_ = 0;  ///< The last look at ticks() and clock: both times.
  Clock::time_point looked_at_{};
};

/// Whether calls were cancelled: 0, then 1 for ever. A futex word of this process.
struct CancellationWord {
  std::atomic<std::uint32_t> cancelled{0};
};

/// The cancellations that apply to a call, innermost first. Never changed.
struct Cancellations {
  std::shared_ptr<CancellationWord> word;
  std::shared_ptr<const Cancellations> around;
};

/// Whether any of them has been cancelled.
[[nodiscard]] bool cancelled(const Cancellations* cancellations) noexcept;

/// All present limits of a thread's calls, those of outer scopes included. Belongs to the thread.
class CallLimits {
 public:
  CallLimits() noexcept = default;
  explicit CallLimits(Deadline only) noexcept : deadline(only) {}

  /// Null: none.
  [[nodiscard]] const std::shared_ptr<const Cancellations>& cancellations() const noexcept { return cancellations_; }
  /// Set the deadline before. A look at the deadline then tells the call path that there is more to look at.
  void set_cancellations(std::shared_ptr<const Cancellations> cancellations) noexcept {
    cancellations_ = std::move(cancellations);
    if (cancellations_ != nullptr) deadline.ask_always();
  }

  Deadline deadline;

 private:
  std::shared_ptr<const Cancellations> cancellations_;
};

}  // namespace lrpc::shim
