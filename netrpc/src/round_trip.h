// How long things take, for timeouts that adapt (Jacobson): what all protocols that send again measure with. When to
// measure (Karn: never where something was sent twice) and what to make of it is each protocol's own.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc {

/// Smoothed value and mean deviation of a time: gains of 1/8 and 1/4.
class SmoothedTime {
 public:
  constexpr void sample(Duration time) noexcept {
    if (!measured_) {
      measured_ = true;
      smoothed_ = time;
      deviation_ = time / 2;
      return;
    }
    const auto error = (time - smoothed_).count();
    smoothed_ += Duration(error >> 3);
    deviation_ += Duration(((error < 0 ? -error : error) - deviation_.count()) >> 2);
  }
  [[nodiscard]] constexpr bool measured() const noexcept { return measured_; }
  [[nodiscard]] constexpr Duration smoothed() const noexcept { return smoothed_; }
  /// What it rarely exceeds: four deviations more than the smoothed value, and `margin` more at least.
  [[nodiscard]] constexpr Duration bound(Duration margin = {}) const noexcept {
    return smoothed_ + std::max(4 * deviation_, margin);
  }

 private:
  bool measured_ = false;
  Duration smoothed_{};
  Duration deviation_{};
};

}  // namespace lrpc::netrpc
