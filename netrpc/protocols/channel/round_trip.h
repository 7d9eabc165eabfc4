// When to send again: the paper's step function (§3.2), made adaptive after Jacobson and Karn.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/netrpc/control.h"
#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc {

/// The round trip to one peer: one time for messages that fit one packet, and one more for each further packet, so that
/// nothing is sent again while the fragmentation layer still works on it.
class RoundTripTimer {
 public:
  RoundTripTimer(Duration initial, Duration minimum, Duration longest) noexcept
      : single_(initial, minimum, kCalm, longest) {}

  /// Only for exchanges in which nothing was sent twice. `more`: packets of request and reply together, beyond one
  /// each.
  void sample(Duration time, std::size_t more) noexcept {
    // The first exchange counts as a small one, even if it is large: a timeout that is too long is the safe error.
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
  /// A second reply shows that the first reply and a question crossed. So the first reply answered the request, which
  /// was sent once: `took` is a measurement, and nothing was lost.
  void crossed(Duration took, std::size_t more) noexcept {
    single_.not_lost();
    sample(took, more);
  }
  void needless(Duration took, std::size_t more, bool no_loss = false) noexcept {
    single_.needless(took / static_cast<Duration::rep>(more + 1), no_loss);
  }

  /// `below`: how long the layer below waits before it asks for a missing fragment; zeros if it does not say.
  [[nodiscard]] Duration timeout(std::size_t more, control::RoundTrip below) const noexcept {
    Duration time = single_.once();
    if (more != 0) [[unlikely]] {
      // Until it is measured, a further packet counts as a small exchange: too long is the safe error.
      time += (each_.measured() ? each_.bound() : time) * static_cast<Duration::rep>(more);
      // The measured time includes exchanges in which the layer below had to ask for fragments. Until that layer has
      // measured its own round trip, allow it all of its timeout.
      Duration settling = below.retransmission_timeout;
      if (each_.measured() && below.smoothed != Duration(0)) settling = std::min(settling, single_.once());
      time = std::max(time + 2 * settling, each_.measured() ? kLeastForFragments : kFirstForFragments);
    }
    return single_.backed_off(time);
  }
  /// How long to wait before the peer is asked whether it has the request: as long as such an exchange usually takes.
  /// That is soon, because a question costs one packet, however large the request is.
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
