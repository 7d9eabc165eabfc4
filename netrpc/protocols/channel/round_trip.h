// When to send again: the paper's step function (§3.2), made adaptive after Jacobson and Karn.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/netrpc/control.h"
#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc {

/// The round trip to one peer. A step for messages that fit one packet; above it, a time for each packet more, so that
/// nothing is sent again while the fragmentation layer is still at it.
class RoundTripTimer {
 public:
  RoundTripTimer(Duration initial, Duration minimum, Duration longest) noexcept
      : single_(initial, minimum, kCalm, longest) {}

  /// `more`: packets of request and reply together beyond the one each. Only of exchanges in which nothing was sent
  /// twice.
  void sample(Duration time, std::size_t more) noexcept {
    // To a peer that has only been sent large messages the first one counts as small: too much, on purpose.
    if (more == 0 || !single_.measured()) [[likely]]
      return single_.sample(time);
    single_.sampled();
    each_.sample(std::max(time - single_.smoothed(), Duration(0)) / static_cast<Duration::rep>(more));
  }
  /// See RetryTimer.
  void lost() noexcept { single_.lost(); }
  void ambiguous() noexcept { single_.ambiguous(); }
  /// A question has been answered, in one packet each way.
  void answered(Duration time) noexcept { single_.sample(time); }
  /// The reply and a question had crossed, as a second reply shows: so the first one had answered the request, which
  /// was sent once. That it took longer than its question waited is what there is to be learnt.
  void crossed(Duration took, std::size_t more) noexcept {
    single_.not_lost();
    sample(took, more);
  }
  void needless(Duration took, std::size_t more, bool no_loss = false) noexcept {
    single_.needless(took / static_cast<Duration::rep>(more + 1), no_loss);
  }

  /// `below`: what the layer below takes itself before it asks for a missing fragment; zeros if it does not say.
  [[nodiscard]] Duration timeout(std::size_t more, control::RoundTrip below) const noexcept {
    Duration time = single_.once();
    if (more != 0) [[unlikely]] {
      // Before it is measured a packet more is taken to cost as much as a small exchange: too much, on purpose.
      time += (each_.measured() ? each_.bound() : time) * static_cast<Duration::rep>(more);
      // What is measured contains the times in which the layer below had to ask. Until it has itself measured, it may
      // take all the time that it says.
      Duration settling = below.retransmission_timeout;
      if (each_.measured() && below.smoothed != Duration(0)) settling = std::min(settling, single_.once());
      time = std::max(time + 2 * settling, each_.measured() ? kLeastForFragments : kFirstForFragments);
    }
    return single_.backed_off(time);
  }
  /// How long to wait before the peer is asked what it has: no longer than such an exchange mostly takes. A question
  /// costs one packet, however large the request is.
  [[nodiscard]] Duration until_asked(std::size_t more) const noexcept {
    const Duration time = single_.once();
    return single_.backed_off(time + (each_.measured() ? each_.smoothed() : time) * static_cast<Duration::rep>(more));
  }
  [[nodiscard]] Duration smoothed() const noexcept { return single_.smoothed(); }

 private:
  static constexpr Duration kCalm = std::chrono::microseconds(500);
  static constexpr Duration kFirstForFragments = std::chrono::milliseconds(5);
  static constexpr Duration kLeastForFragments = std::chrono::microseconds(300);
  RetryTimer single_;
  SmoothedTime each_;
};

}  // namespace lrpc::netrpc
