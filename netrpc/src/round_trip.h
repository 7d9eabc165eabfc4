// Measured times for adaptive timeouts (Jacobson), for all protocols that retransmit. Each protocol decides when to
// measure (Karn: never an exchange with a retransmission) and how to use the result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

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
  /// What the time rarely exceeds: the smoothed value plus four deviations, or plus `margin` if that is more.
  [[nodiscard]] constexpr Duration bound(Duration margin = {}) const noexcept {
    return smoothed_ + std::max(4 * deviation_, margin);
  }

 private:
  bool measured_ = false;
  Duration smoothed_{};
  Duration deviation_{};
};

/// How long a caller waits for a reply before it retransmits. Callers of the same peer may share a timer.
///
/// The timeout is twice the smoothed time, or the smoothed time plus four deviations if that is longer. Its floor
/// depends on recent losses. On a fast link that loses packets, the wait for lost ones dominates: so the floor is low.
/// If nothing is lost, a late reply is delayed by a busy host: so the floor is high, and callers do not retransmit
/// needlessly.
class RetryTimer {
 public:
  /// `lossy` and `calm`: the floors while packets are lost, and while none are.
  constexpr RetryTimer(Duration initial, Duration lossy, Duration calm, Duration longest) noexcept
      : initial_(std::min(initial, longest)),
        lossy_(std::min(lossy, longest)),
        calm_(std::min(std::max(lossy, calm), longest)),
        longest_(longest) {}

  /// For an exchange without a retransmission only.
  constexpr void sample(Duration time) noexcept {
    time_.sample(time);
    sampled();
  }
  /// The same for an exchange whose time is unknown.
  constexpr void sampled() noexcept {
    if (!disturbed_) [[likely]]
      return;
    doubled_ = in_a_row_ = 0;
    if (lost_lately_ != 0 && --lost_lately_ == 0) losses_ = 0;
    disturbed_ = lost_lately_ != 0;
  }
  /// A packet of an exchange has been lost, and it is known which copy was answered.
  constexpr void lost() noexcept {
    disturbed_ = true;
    if (losses_ == 0) lost_before_ = lost_lately_;
    if (losses_ < kMostLosses) ++losses_;
    lost_lately_ = kMemory;
  }
  /// An exchange with a retransmission has ended. It is not known which copy was answered, so it gives no sample (Karn)
  /// and counts as a loss. After kRun of them in a row the round trip is probably longer: the timeout is doubled until
  /// an exchange can be measured. It is not doubled after each one: on a wire that loses some packets, callers that
  /// share the timer would make each other wait.
  constexpr void ambiguous() noexcept {
    lost();
    if (++in_a_row_ < kRun) return;
    in_a_row_ = 0;
    if (doubled_ < kMostDoubled) ++doubled_;
  }
  /// An exchange that was counted as a loss was none. When no counted loss is left, undoes the effect of all of them.
  constexpr void not_lost() noexcept {
    if (losses_ != 0 && --losses_ == 0)
      lost_lately_ = static_cast<std::uint8_t>(std::max(lost_before_ - (kMemory - lost_lately_), 0));
  }
  /// A retransmission was needless: the peer has said so, or has answered both copies. The exchange took `took`: the
  /// timeout is doubled until it exceeds that, and stays doubled until an exchange can be measured. `no_loss`:
  /// ambiguous() has counted the exchange as a loss.
  constexpr void needless(Duration took, bool no_loss = false) noexcept {
    if (no_loss) not_lost();
    disturbed_ = true;
    in_a_row_ = 0;
    while (doubled_ < kMostDoubled && timeout() <= took) ++doubled_;
  }
  [[nodiscard]] constexpr bool measured() const noexcept { return time_.measured(); }
  [[nodiscard]] constexpr Duration smoothed() const noexcept { return time_.smoothed(); }
  [[nodiscard]] constexpr Duration timeout() const noexcept { return backed_off(once()); }

  /// The timeout before doubling, for protocols that add to it; backed_off() then doubles the sum.
  [[nodiscard]] constexpr Duration once() const noexcept {
    if (!time_.measured()) [[unlikely]]
      return initial_;
    return std::max(time_.bound(time_.smoothed()), lost_lately_ != 0 ? lossy_ : calm_);
  }
  [[nodiscard]] constexpr Duration backed_off(Duration once) const noexcept {
    return std::min(once * (Duration::rep{1} << doubled_), longest_);
  }

  /// The pause after `times` retransmissions; `first` is the wait after the first copy. It doubles every second time.
  /// If three of ten packets are lost, half of all exchanges fail; with a doubling each time only `longest` would bound
  /// the mean wait (0.51 x 2 > 1; but 0.51 x 0.51 x 2 = 0.52).
  [[nodiscard]] static constexpr Duration pause_after(unsigned times, Duration first, Duration longest) noexcept {
    return std::min(first * (Duration::rep{1} << std::min(times / 2, 20U)), longest);
  }

 private:
  /// Exchanges without a loss after which the link counts as calm. A link that loses one packet in a hundred rarely
  /// does: there waiting for the calm floor would cost more than short timers.
  static constexpr std::uint8_t kMemory = 64;
  static constexpr std::uint8_t kRun = 8;
  static constexpr std::uint8_t kMostLosses = 255;
  static constexpr std::uint8_t kMostDoubled = 14;  ///< From a timeout of 30 us to one of half a second.
  Duration initial_;
  Duration lossy_;
  Duration calm_;
  Duration longest_;
  SmoothedTime time_;
  bool disturbed_ = false;  ///< Any of the following is not zero.
  std::uint8_t doubled_ = 0;
  std::uint8_t in_a_row_ = 0;
  std::uint8_t lost_lately_ = 0;
  std::uint8_t lost_before_ = 0;  ///< lost_lately_ before the first counted loss.
  std::uint8_t losses_ = 0;       ///< Losses counted since the link was last calm.
};

/// The last call of a channel with a retransmission. A second reply to it shows that the retransmission was needless.
struct Repeated {
  std::uint32_t sequence = 0;
  std::uint32_t life = 0;  ///< The server's.
  std::size_t more = 0;    ///< Packets beyond one for the request and one for the reply.
  Duration took{};         ///< Zero: there is no such call, or it has been used.
  bool asked = false;      ///< Nothing was retransmitted: the peer was only asked whether it has the request.

  [[nodiscard]] bool is(std::uint32_t of_sequence, std::uint32_t of_life) const noexcept {
    return took != Duration::zero() && sequence == of_sequence && life == of_life;
  }
};

}  // namespace lrpc::netrpc
