// When to send again: the paper's step function (§3.2), made adaptive after Jacobson and Karn.
#pragma once

#include <algorithm>
#include <cstddef>

#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc {

/// The round trip to one peer. A step for messages that fit one packet; above it, a time for each packet more, so that
/// nothing is sent again while the fragmentation layer is still at it.
class RoundTripTimer {
 public:
  RoundTripTimer(Duration initial, Duration minimum, Duration maximum) noexcept
      : initial_(initial), minimum_(minimum), maximum_(maximum) {}

  /// `more`: packets of request and reply together beyond the one each. Only of exchanges in which nothing was sent
  /// twice.
  void sample(Duration time, std::size_t more) noexcept {
    backoff_ = ambiguous_ = 0;
    if (more == 0) {
      single_.sample(time);
    } else {
      each_.sample(std::max(time - single_.smoothed(), Duration(0)) / static_cast<Duration::rep>(more));
    }
  }
  /// An exchange has ended in which something was sent twice: which one was answered is not known. If nothing else
  /// happens for a while the round trip has become longer than the timeout, which then stays doubled until one can be
  /// measured again (Karn). A single one is a lost packet: all channels to the peer share this timer, and with several
  /// callers on a wire that loses some packets each would make the others wait.
  void ambiguous() noexcept {
    if (++ambiguous_ < kRun) return;
    ambiguous_ = 0;
    backoff_ = std::min(backoff_ + 1, kMaxBackoff);
  }

  /// `settling`: the time that the layer below takes itself before it asks for a missing fragment; zero if it does
  /// not say.
  [[nodiscard]] Duration timeout(std::size_t more, Duration settling) const noexcept {
    Duration time = single_.measured() ? std::max(single_.bound(), minimum_) : initial_;
    if (more != 0) [[unlikely]] {
      // Before it is measured a packet more is taken to cost as much as a small exchange: too much, on purpose.
      const Duration each = each_.measured() ? each_.bound() : time;
      time += each * static_cast<Duration::rep>(more) + 2 * settling;
      time = std::max(time, kLeastForFragments);
    }
    return std::min(time * (Duration::rep{1} << backoff_), maximum_);
  }
  [[nodiscard]] Duration smoothed() const noexcept { return single_.smoothed(); }

 private:
  static constexpr int kMaxBackoff = 10;
  static constexpr int kRun = 8;  ///< Ambiguous exchanges one after the other that are taken for a longer round trip.
  static constexpr Duration kLeastForFragments = std::chrono::milliseconds(5);
  SmoothedTime single_;
  SmoothedTime each_;
  Duration initial_;
  Duration minimum_;
  Duration maximum_;
  int backoff_ = 0;
  int ambiguous_ = 0;
};

}  // namespace lrpc::netrpc
