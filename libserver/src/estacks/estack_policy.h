// How an E-stack waits, and on which processor. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/detail/shim/call/caller_policy.h"
#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller/poller_policy.h"

namespace lrpc::server {

/// The state machine of one E-stack, between two calls. It may be bound to its caller's processor. The two then hand
/// the processor to each other by yielding: the cheapest way for a call that no poller takes.
///
///   unbound   parks after each call
///   bound     yields kYields times after a call of a caller that yields, then parks
///
/// It follows a caller that yields, or that would if the E-stack were beside it. A caller that does not yield has found
/// other threads on its processor, so the E-stack leaves that processor.
class EStackPolicy {
 public:
  /// Calls in a row from one processor before the E-stack moves there, and the least time between two moves: a move
  /// costs 29 us, and a sleeping caller may wake up on another processor each time.
  static constexpr std::uint32_t kCallsBeforeMove = 2;
  static constexpr std::uint64_t kMoveIntervalUs = 1'000;
  /// After this many calls in a row from processors other than its own, none often enough for a move, it is unbound.
  static constexpr std::uint32_t kCallsElsewhere = 4;
  /// The interval doubles, up to this, for an E-stack that moves again before ten intervals have passed.
  static constexpr std::uint64_t kMostMoveIntervalUs = 64'000;
  /// Several, because the kernel does not always pick the caller the first time.
  static constexpr int kYields = 3;
  /// Calls that come before the E-stack sleeps are served one after the other. If they are quick, it yields as often as
  /// a poller does, because another thread may wait for the processor.
  static constexpr std::uint64_t kYieldUs = PollerPolicy::kYieldUs;
  /// A park in which the E-stack sleeps takes at least this long; one that finds the next call is over at once.
  static constexpr std::uint64_t kGaveWayUs = 2;
  /// A thread that runs longer than this has work for a time slice. Then no yield follows for kCostFactor times as
  /// long; a caller does the same.
  static constexpr std::uint64_t kLongTurnUs = PollerPolicy::kEvictionUs;
  static constexpr std::uint32_t kCostFactor = shim::CallerPolicy::kCostFactor;
  /// After this many calls in a row, each within a poll window of the one before, an A-stack is hot: a poller would
  /// have got them.
  static constexpr std::uint32_t kHotStreak = 2;

  /// A call was served, `after_us` after the one before. Returns whether the A-stack is hot.
  [[nodiscard]] bool served(std::uint64_t after_us, std::uint64_t poll_window_us) noexcept {
    streak_ = after_us < poll_window_us ? streak_ + 1 : 0;
    return streak_ >= kHotStreak;
  }

  /// After a call: whether to yield now. If so, yielded() is next.
  [[nodiscard]] bool yield_due(shim::Moment now) noexcept {
    if (busy_since_ == 0) busy_since_ = now.ticks;
    return now.since(busy_since_) >= keeps_us_ && !yields_.holds(now);
  }
  /// The yield ended `now`. The E-stack then keeps the processor as long as others had it, less the time that it
  /// sleeps: so yields leave it half of the processor. Only the yield itself is measured: before the next call the
  /// caller may pause, or a poller may have the calls.
  void yielded(std::uint64_t took_us, shim::Moment now) noexcept {
    busy_since_ = now.ticks;
    keeps_us_ = std::clamp(took_us, kYieldUs, kLongTurnUs);
    if (took_us > kLongTurnUs) yields_.failed_at_a_cost(now, took_us, kCostFactor);
  }
  /// It has given the processor away.
  void gave_way() noexcept { busy_since_ = 0; }
  /// It parked for `took_us`.
  void parked(std::uint64_t took_us) noexcept {
    if (took_us >= kGaveWayUs) gave_way();
    keeps_us_ = std::max(kYieldUs, keeps_us_ - std::min(keeps_us_, took_us));
  }

  enum class Move : std::uint8_t { stay, bind, unbind };
  /// Where to wait for the next call of a caller on `processor`. `yields`: by the call word, the caller yields or
  /// would.
  [[nodiscard]] Move move(std::uint16_t processor, bool yields, shim::Moment now) const noexcept {
    if (!yields) return bound() ? Move::unbind : Move::stay;
    if (processor == bound_to_) return Move::stay;
    if (calls_there_ < kCallsBeforeMove) return bound() && elsewhere_ >= kCallsElsewhere ? Move::unbind : Move::stay;
    if (!now.before(no_move_before_)) return Move::bind;
    return bound() ? Move::unbind : Move::stay;  // its caller is not where it is bound: the scheduler places it
  }
  /// Counts the calls for move().
  void called_from(std::uint16_t processor) noexcept {
    calls_there_ = processor == seen_ ? calls_there_ + 1 : 1;
    elsewhere_ = processor == bound_to_ ? 0 : elsewhere_ + 1;
    seen_ = processor;
  }
  void bound_to(std::uint16_t processor, shim::Moment now) noexcept {
    const bool soon = now.since(moved_) < 10 * interval_us_;
    interval_us_ = soon ? std::min(2 * interval_us_, kMostMoveIntervalUs) : kMoveIntervalUs;
    moved_ = now.ticks;
    no_move_before_ = now.after(interval_us_);
    bound_to_ = processor;
  }
  void unbound(shim::Moment now) noexcept {
    bound_to_ = shim::kNoProcessor;
    no_move_before_ = std::max(no_move_before_, now.after(kMoveIntervalUs));
  }
  [[nodiscard]] bool bound() const noexcept { return bound_to_ != shim::kNoProcessor; }
  [[nodiscard]] std::uint16_t processor() const noexcept { return bound_to_; }

  /// Whether to yield the processor before parking: the last call's caller yields, and is here. How long the yield
  /// takes says nothing, because the caller may compute. The caller finds out whether others want the processor.
  [[nodiscard]] bool hands_over(std::uint16_t caller, bool yields) const noexcept {
    return yields && bound() && caller == bound_to_;
  }

 private:
  std::uint32_t streak_ = 0;
  std::uint64_t busy_since_ = 0;       ///< ticks(); 0: no call since it gave way.
  std::uint64_t keeps_us_ = kYieldUs;  ///< How long it keeps the processor before the next yield.
  shim::Distrust<shim::CallerPolicy::kYieldSpans> yields_;
  std::uint16_t bound_to_ = shim::kNoProcessor;
  std::uint16_t seen_ = shim::kNoProcessor;
  std::uint32_t calls_there_ = 0;
  std::uint32_t elsewhere_ = 0;  ///< Calls in a row from processors that it is not bound to.
  std::uint64_t interval_us_ = kMoveIntervalUs;
  std::uint64_t moved_ = 0;           ///< ticks()
  std::uint64_t no_move_before_ = 0;  ///< ticks()
};

}  // namespace lrpc::server
