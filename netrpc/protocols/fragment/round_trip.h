// How long to wait for what a peer sends back: measured (Jacobson), never from a packet that was asked for twice
// (Karn).
#pragma once

#include <algorithm>

#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc::fragment {

class RoundTripEstimate {
 public:
  /// `initial` until something has been measured; `margin`: least that is added to the mean, which is doubled at least;
  /// `ceiling`: of everything.
  constexpr RoundTripEstimate(Duration initial, Duration margin, Duration ceiling) noexcept
      : initial_(initial), margin_(margin), ceiling_(ceiling) {}

  void sample(Duration measured) noexcept {
    time_.sample(std::min(measured, ceiling_));  // this host may have stood still
    backed_off_ = 1;
  }
  /// Nothing came in time: wait twice as long from now on, until something has been measured.
  void back_off() noexcept {
    if (timeout() < ceiling_) backed_off_ *= 2;
  }
  [[nodiscard]] bool measured() const noexcept { return time_.measured(); }
  [[nodiscard]] Duration smoothed() const noexcept { return time_.smoothed(); }
  /// How much later than expected something may come; `margin` at least.
  [[nodiscard]] Duration lateness() const noexcept { return std::max(timeout() - smoothed(), margin_); }
  [[nodiscard]] Duration timeout() const noexcept {
    const Duration once = time_.measured() ? time_.bound(std::max(margin_, time_.smoothed())) : initial_;
    return std::min(once * backed_off_, ceiling_);
  }

 private:
  Duration initial_;
  Duration margin_;
  Duration ceiling_;
  SmoothedTime time_;
  int backed_off_ = 1;
};

}  // namespace lrpc::netrpc::fragment
