// The numbers of one flow as its sender sees them; window.h is its receiver's side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc::composite {

/// Which numbers are under way: sent, and not acknowledged or given up. A busy flight stays in its PeerTable.
class Flight {
 public:
  [[nodiscard]] bool busy() const noexcept { return lowest_ != next_; }
  /// Whether `number` may be sent, where at most `window` numbers lie between the first under way and the last.
  /// Messages may leave in another order than that of their numbers.
  [[nodiscard]] bool room(std::uint64_t number, std::uint64_t window) const noexcept {
    return busy() ? std::max(next_, number + 1) - std::min(lowest_, number) <= window : number + window >= next_;
  }
  void sent(std::uint64_t number) noexcept {
    first_ = std::min(first_, number);
    lowest_ = busy() ? std::min(lowest_, number) : number;
    next_ = std::max(next_, number + 1);
  }
  /// As far as is known, no number before this one is sent any more. It may be lower than all that are under way.
  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  /// To be called when some are no longer under way. Asks is_under_way(number) for each from the lowest, until one is.
  template <class IsUnderWay>
  void settle(IsUnderWay is_under_way) noexcept {
    const bool all_left = first_ == lowest_;  // otherwise a lower number may not have left yet
    while (busy() && !is_under_way(lowest_)) ++lowest_;
    if (all_left) first_ = lowest_;
  }
  /// The peer has acknowledged something: it is no forged address.
  bool answered = false;

 private:
  std::uint64_t first_ = 1;
  std::uint64_t lowest_ = 1;
  std::uint64_t next_ = 1;
};

/// The time from a message's first transmission until it is given up, if this host does not stand still: the pauses are
/// 1, 2, 4, 8, 8, ... intervals.
[[nodiscard]] inline Duration regular_time(Duration interval, std::uint64_t tries) noexcept {
  constexpr std::uint64_t kMany = 1U << 31;
  const auto pauses = static_cast<Duration::rep>(tries < 3 ? (1U << tries) - 1 : 8 * std::min(tries, kMany) - 17);
  return interval < Duration::max() / pauses ? interval * pauses : Duration::max();
}

}  // namespace lrpc::netrpc::composite
