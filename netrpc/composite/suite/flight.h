// The numbers of one flow as its sender sees them; window.h is its receiver's side.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lrpc::netrpc::composite {

/// Which numbers are under way: sent, and not acknowledged or given up. A busy flight stays in its PeerTable.
class Flight {
 public:
  [[nodiscard]] bool busy() const noexcept { return lowest_ != next_; }
  /// Whether `number` may be sent, where at most `window` numbers lie between the first under way and the last.
  [[nodiscard]] bool room(std::uint64_t number, std::uint64_t window) const noexcept {
    return !busy() || number - lowest_ < window;
  }
  void sent(std::uint64_t number) noexcept {
    if (!busy()) lowest_ = number;
    next_ = std::max(next_, number + 1);
  }
  /// To be called when some are no longer under way. Asks is_under_way(number) for each from the lowest, until one is.
  template <class IsUnderWay>
  void settle(IsUnderWay is_under_way) noexcept {
    while (busy() && !is_under_way(lowest_)) ++lowest_;
  }
  /// The peer has acknowledged something: it is no forged address.
  bool answered = false;

 private:
  std::uint64_t lowest_ = 1;
  std::uint64_t next_ = 1;
};

}  // namespace lrpc::netrpc::composite
