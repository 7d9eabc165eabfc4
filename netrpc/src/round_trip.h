// How long things take, for timeouts that adapt (Jacobson): what all protocols that send again measure with. When to
// measure (Karn: never where something was sent twice) and what to make of it is each protocol's own.
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
  /// What it rarely exceeds: four deviations more than the smoothed value, and `margin` more at least.
  [[nodiscard]] constexpr Duration bound(Duration margin = {}) const noexcept {
    return smoothed_ + std::max(4 * deviation_, margin);
  }

 private:
  bool measured_ = false;
  Duration smoothed_{};
  Duration deviation_{};
};

/// How long a caller waits for a reply before it sends again. Those who call the same peer may share one.
///
/// The timeout is twice the smoothed time, or four deviations more if that is longer. Its floor depends on what was
/// lost lately. On a fast link that loses packets the wait for lost ones is all that counts: so it is short. Where
/// nothing is lost, what is late is held up at a busy host: then the floor keeps callers from sending in vain.
class RetryTimer {
 public:
  /// `lossy` and `calm`: the floors while packets are lost, and while none are.
  constexpr RetryTimer(Duration initial, Duration lossy, Duration calm, Duration longest) noexcept
      : initial_(std::min(initial, longest)),
        lossy_(std::min(lossy, longest)),
        calm_(std::min(std::max(lossy, calm), longest)),
        longest_(longest) {}

  /// Only of an exchange in which nothing was sent twice.
  constexpr void sample(Duration time) noexcept {
    time_.sample(time);
    sampled();
  }
  /// The same, without a time for this one.
  constexpr void sampled() noexcept {
    if (!disturbed_) [[likely]]
      return;
    doubled_ = in_a_row_ = 0;
    if (lost_lately_ != 0 && --lost_lately_ == 0) losses_ = 0;
    disturbed_ = lost_lately_ != 0;
  }
  /// A packet of an exchange has been lost; it is known which one was answered.
  constexpr void lost() noexcept {
    disturbed_ = true;
    if (losses_ == 0) lost_before_ = lost_lately_;
    if (losses_ < kMostLosses) ++losses_;
    lost_lately_ = kMemory;
  }
  /// An exchange has ended in which something was sent twice: which copy was answered is not known, so it measures
  /// nothing (Karn). It is taken for a loss. Many in a row are taken for a longer round trip: the timeout is doubled
  /// until one can be measured. Not after each: on a wire that loses some packets each caller would make the others
  /// wait.
  constexpr void ambiguous() noexcept {
    lost();
    if (++in_a_row_ < kRun) return;
    in_a_row_ = 0;
    if (doubled_ < kMostDoubled) ++doubled_;
  }
  /// An exchange that was taken for a loss was none. When none of those is left, none has been.
  constexpr void not_lost() noexcept {
    if (losses_ != 0 && --losses_ == 0)
      lost_lately_ = static_cast<std::uint8_t>(std::max(lost_before_ - (kMemory - lost_lately_), 0));
  }
  /// What was sent again had not been lost: the peer has said so, or has answered both copies. The exchange took
  /// `took`: the timeout is doubled until it covers that, and stays so until something can be measured. `no_loss`:
  /// it has been ambiguous() before, and was taken for a loss.
  constexpr void needless(Duration took, bool no_loss = false) noexcept {
    if (no_loss) not_lost();
    disturbed_ = true;
    in_a_row_ = 0;
    while (doubled_ < kMostDoubled && timeout() <= took) ++doubled_;
  }
  [[nodiscard]] constexpr bool measured() const noexcept { return time_.measured(); }
  [[nodiscard]] constexpr Duration smoothed() const noexcept { return time_.smoothed(); }
  [[nodiscard]] constexpr Duration timeout() const noexcept { return backed_off(once()); }

  /// The timeout before it is doubled, for who adds to it; and what then becomes of it.
  [[nodiscard]] constexpr Duration once() const noexcept {
    if (!time_.measured()) [[unlikely]]
      return initial_;
    return std::max(time_.bound(time_.smoothed()), lost_lately_ != 0 ? lossy_ : calm_);
  }
  [[nodiscard]] constexpr Duration backed_off(Duration once) const noexcept {
    return std::min(once * (Duration::rep{1} << doubled_), longest_);
  }

  /// The pause after something was sent again `times` times, where `first` was waited for the first copy. It is doubled
  /// every second time: where three of ten packets are lost, half of all exchanges are, and doubled each time the mean
  /// wait has no bound but `longest` (0.51 x 2 > 1; but 0.51 x 0.51 x 2 = 0.52).
  [[nodiscard]] static constexpr Duration pause_after(unsigned times, Duration first, Duration longest) noexcept {
    return std::min(first * (Duration::rep{1} << std::min(times / 2, 20U)), longest);
  }

 private:
  /// Exchanges without a loss after which the link counts as calm. At one lost in a hundred packets it rarely does:
  /// there the wait for the calm floor would cost more than short timers do.
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
  std::uint8_t lost_before_ = 0;  ///< What it was before the first of the losses that are counted.
  std::uint8_t losses_ = 0;       ///< Exchanges that are taken for losses, since there was none lately.
};

/// The last call of a channel in which something was sent again, perhaps in vain: a second reply to it shows that.
struct Repeated {
  std::uint32_t sequence = 0;
  std::uint32_t life = 0;  ///< The server's.
  std::size_t more = 0;    ///< Packets beyond the first of request and reply.
  Duration took{};         ///< Zero: there was none, or it has been made use of.
  bool asked = false;      ///< Nothing was sent again: the peer was only asked whether it has the request.

  [[nodiscard]] bool is(std::uint32_t of_sequence, std::uint32_t of_life) const noexcept {
    return took != Duration::zero() && sequence == of_sequence && life == of_life;
  }
};

}  // namespace lrpc::netrpc
