// How an E-stack decides to wait, and where. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/detail/shim/call/caller_policy.h"
#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller/poller_policy.h"

namespace lrpc::server {

/// The state machine of one E-stack, between two calls. It may be bound to a processor, its caller's; the two then hand
/// that to each other by yielding, which is what a call costs least where no poller has it.
///
///   unbound   parks after each call
///   bound     yields kYields times after a call of a caller that yields, then parks
///
/// It follows a caller that yields, or would if it sat beside it; a caller that does not has found that there are
/// others on its processor, and the E-stack leaves it to them.
class EStackPolicy {
 public:
  /// Calls in a row from one processor before the E-stack moves there, and the least time between two moves: a move
  /// costs 29 us, and a sleeping caller may wake up on another processor each time.
  static constexpr std::uint32_t kCallsBeforeMove = 2;
  static constexpr std::uint64_t kMoveIntervalUs = 1'000;
  /// After so many calls in a row from processors that it is not bound to, but not from one of them often enough to
  /// move there, it is bound no more.
  static constexpr std::uint32_t kCallsElsewhere = 4;
  /// The interval doubles, up to this, for an E-stack that moves again before ten intervals have passed.
  static constexpr std::uint64_t kMostMoveIntervalUs = 64'000;
  /// The kernel does not always pick the caller at the first time.
  static constexpr int kYields = 3;
  /// Calls that come before the E-stack sleeps are served one after the other. Where they are quick, it offers the
  /// processor to others as often as a poller does: one may wait for it right there.
  static constexpr std::uint64_t kYieldUs = PollerPolicy::kYieldUs;
  /// A park in which the E-stack has slept takes so long at least; one that has found the next call is over at once.
  static constexpr std::uint64_t kGaveWayUs = 2;
  /// A thread that takes longer has a time slice's work, and is offered no more for so many times as long, as a caller
  /// does.
  static constexpr std::uint64_t kLongTurnUs = PollerPolicy::kEvictionUs;
  static constexpr std::uint32_t kCostFactor = shim::CallerPolicy::kCostFactor;
  /// So many calls in a row, each within a poller's window of the one before, make an A-stack hot: a poller would have
  /// got them.
  static constexpr std::uint32_t kHotStreak = 2;

  /// A call was served, so long after the one before. Returns whether the A-stack is hot.
  [[nodiscard]] bool served(std::uint64_t after_us, std::uint64_t poll_window_us) noexcept {
    streak_ = after_us < poll_window_us ? streak_ + 1 : 0;
    return streak_ >= kHotStreak;
  }

  /// After a call: whether to yield now. If so, yielded() is next.
  [[nodiscard]] bool yield_due(shim::Moment now) noexcept {
    if (busy_since_ == 0) busy_since_ = now.ticks;
    return now.since(busy_since_) >= keeps_us_ && !yields_.holds(now);
  }
  /// The yield ended `now`. What others took, it keeps as long, less what it sleeps: so offers leave it half of the
  /// processor. Only the yield itself counts: before the next call the caller may pause, and a poller have the calls.
  void yielded(std::uint64_t took_us, shim::Moment now) noexcept {
    busy_since_ = now.ticks;
    keeps_us_ = std::clamp(took_us, kYieldUs, kLongTurnUs);
    if (took_us > kLongTurnUs) yields_.failed_at_a_cost(now, took_us, kCostFactor);
  }
  /// It has handed over.
  void gave_way() noexcept { busy_since_ = 0; }
  /// Its park took so long.
  void parked(std::uint64_t took_us) noexcept {
    if (took_us >= kGaveWayUs) gave_way();
    keeps_us_ = std::max(kYieldUs, keeps_us_ - std::min(keeps_us_, took_us));
  }

  enum class Move : std::uint8_t { stay, bind, unbind };
  /// Where to be for the next call of a caller that was on `processor`. `yields`: by its word it yields, or would.
  [[nodiscard]] Move move(std::uint16_t processor, bool yields, shim::Moment now) const noexcept {
    if (!yields) return bound() ? Move::unbind : Move::stay;
    if (processor == bound_to_) return Move::stay;
    if (calls_there_ < kCallsBeforeMove) return bound() && elsewhere_ >= kCallsElsewhere ? Move::unbind : Move::stay;
    if (!now.before(no_move_before_)) return Move::bind;
    return bound() ? Move::unbind : Move::stay;  // where it is bound, its caller is not: better anywhere
  }
  /// Counts the calls that move() goes by.
  void called_from(std::uint16_t processor) noexcept {
    calls_there_ = processor == seen_ ? calls_there_ + 1 : 1;
    elsewhere_ = processor == bound_to_ ? 0 : elsewhere_ + 1;
    seen_ = processor;
  }
  void bound_to(std::uint16_t processor, shim::Moment now) noexcept {
    interval_us_ = now.since(moved_) < 10 * interval_us_ ? 2 * interval_us_ : kMoveIntervalUs;
    if (interval_us_ > kMostMoveIntervalUs) interval_us_ = kMostMoveIntervalUs;
    moved_ = now.ticks;
    no_move_before_ = now.after(interval_us_);
    bound_to_ = processor;
  }
  void unbound(shim::Moment now) noexcept {
    bound_to_ = shim::kNoProcessor;
    if (no_move_before_ < now.after(kMoveIntervalUs)) no_move_before_ = now.after(kMoveIntervalUs);
  }
  [[nodiscard]] bool bound() const noexcept { return bound_to_ != shim::kNoProcessor; }
  [[nodiscard]] std::uint16_t processor() const noexcept { return bound_to_; }

  /// Whether to hand the processor over before parking: the last call's caller yields, and sits here. How long that
  /// takes says nothing: perhaps the caller computes. Whether others want the processor, the caller finds out.
  [[nodiscard]] bool hands_over(std::uint16_t caller, bool yields) const noexcept {
    return yields && bound() && caller == bound_to_;
  }

 private:
  std::uint32_t streak_ = 0;
  std::uint64_t busy_since_ = 0;       ///< ticks(); 0: no call since it gave way.
  std::uint64_t keeps_us_ = kYieldUs;  ///< Before the next offer.
  shim::Distrust<shim::CallerPolicy::kYieldSpans> yields_;
  std::uint16_t bound_to_ = shim::kNoProcessor;
  std::uint16_t seen_ = shim::kNoProcessor;
  std::uint32_t calls_there_ = 0;
  std::uint32_t elsewhere_ = 0;  ///< Calls in a row from elsewhere than where it is bound.
  std::uint64_t interval_us_ = kMoveIntervalUs;
  std::uint64_t moved_ = 0;           ///< ticks()
  std::uint64_t no_move_before_ = 0;  ///< ticks()
};

}  // namespace lrpc::server
