// How long to wait before sending again (Jacobson and Karels; Karn: calls that were sent again are no sample).
#pragma once

#include <algorithm>

#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc::mrpc {

class RoundTrip {
 public:
  RoundTrip(Duration initial, Duration floor) noexcept : floor_(floor), timeout_(initial) {}

  void sample(Duration measured) noexcept {
    time_.sample(measured);
    timeout_ = std::max(floor_, time_.bound());
  }
  [[nodiscard]] Duration smoothed() const noexcept { return time_.smoothed(); }
  [[nodiscard]] Duration timeout() const noexcept { return timeout_; }

 private:
  Duration floor_;
  Duration timeout_;
  SmoothedTime time_;
};

}  // namespace lrpc::netrpc::mrpc
