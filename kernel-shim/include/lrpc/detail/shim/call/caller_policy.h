// How a caller decides to wait (LRPC §3.4), and what the server tells it for that. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::shim {

/// AStackHead::polled: whether a poller scans the word, on which processor, in which stint of polling and in which turn
/// of that, and whether it fences for its callers when it goes. Zero: none does. A hint, and hostile: a lie costs the
/// liar's callers kExchangeMicroseconds a call, or a twentieth of their time (CallerPolicy).
class PolledHint {
 public:
  constexpr PolledHint() noexcept = default;
  constexpr explicit PolledHint(std::uint32_t bits) noexcept : bits_(bits) {}
  /// `stint` counts up with each stint of the poller, so that who has lost trust in one begins anew with the next.
  /// `turn` counts up each time that the poller has offered its processor to others, so that callers look up from their
  /// exchange and do the same.
  constexpr PolledHint(std::uint16_t processor, std::uint64_t stint, std::uint64_t turn = 0) noexcept
      : bits_(static_cast<std::uint32_t>(stint % kStints + 1) << kStintShift |
              static_cast<std::uint32_t>(turn % kTurns) << kTurnShift | processor) {}

  /// The same of a poller that cannot have the kernel fence for its callers (heavy_shared_fence()): who leaves a call
  /// to it fences himself, then looks at the hint once more.
  [[nodiscard]] constexpr PolledHint without_fence() const noexcept { return PolledHint(bits_ | kNoFence); }

  /// The same of a poller that stays there although callers sit there: they are to lend it their processor.
  [[nodiscard]] constexpr PolledHint as_guest() const noexcept { return PolledHint(bits_ | kGuest); }

  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  /// A poller scans, and fences for us. One comparison.
  [[nodiscard]] constexpr bool polled_and_fenced() const noexcept { return static_cast<std::int32_t>(bits_) > 0; }
  [[nodiscard]] constexpr bool polled() const noexcept { return bits_ != 0; }
  [[nodiscard]] constexpr bool guest() const noexcept { return (bits_ & kGuest) != 0; }
  [[nodiscard]] constexpr std::uint16_t processor() const noexcept { return static_cast<std::uint16_t>(bits_); }
  [[nodiscard]] constexpr std::uint16_t stint() const noexcept {
    return static_cast<std::uint16_t>((bits_ & ~kNoFence) >> kStintShift);
  }

 private:
  static constexpr unsigned kTurnShift = 16;
  static constexpr std::uint32_t kGuest = 1U << 21;
  static constexpr unsigned kStintShift = 22;
  static constexpr std::uint32_t kNoFence = 1U << 31;
  static constexpr std::uint64_t kTurns = 32;
  static constexpr std::uint64_t kStints = 511;

  std::uint32_t bits_ = 0;
};

/// AStackHead::attached: whether an E-stack is associated, and whether it is bound to a processor. A hint, too: a lie
/// about the first costs the liar's caller a bounded sleep, one about the second a yield or two.
class EStackHint {
 public:
  constexpr explicit EStackHint(std::uint32_t bits) noexcept : bits_(bits) {}
  static constexpr EStackHint nobody() noexcept { return EStackHint(0); }
  static constexpr EStackHint anywhere() noexcept { return EStackHint(1); }
  static constexpr EStackHint beside(std::uint16_t processor) noexcept { return EStackHint(processor + 2U); }

  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool is_beside(std::uint16_t processor) const noexcept {
    return is_processor(processor) && bits_ == processor + 2U;
  }

 private:
  std::uint32_t bits_ = 0;
};

/// The state machine of one A-stack's caller. Where it waits for the return:
///
///   exchange   a poller scans the word on another processor: poll, for at most kExchangeMicroseconds; and at each of
///              the poller's turns offer this processor to others, as the poller has done with its own
///   lend       a poller scans it on this processor, as a guest: sleep for at most kLendMicroseconds, so that it runs
///   yield      the E-stack is bound to this processor: hand the processor over, for at most kYieldMicroseconds
///   sleep      else
///
/// It belongs to whoever holds the A-stack. The call path asks one thing, trusts(), and notes nothing when all is well.
class CallerPolicy {
 public:
  enum class Way : std::uint8_t { exchange, lend, yield, sleep };

  /// How long a caller polls before it gives the exchange up: about two futex round trips, after which a sleep costs
  /// less than what was polled away.
  static constexpr std::uint32_t kExchangeMicroseconds = 20;
  /// A poller that is here serves other callers for PollerPolicy::kYieldUs, then us. Longer than a clock tick: a sleep
  /// that ends before the next tick has the kernel program the timer, which takes a virtual machine 10 to 16 us.
  static constexpr std::uint32_t kLendMicroseconds = 5'000;
  /// Two switches bring the result if the E-stack sits on our processor, and 20 us if it is just on its way there (a
  /// move takes as long as a wake-up): then a sleep would have the kernel wake us up on another processor than its own.
  static constexpr std::uint32_t kYieldMicroseconds = 20;
  /// A yield that took longer went to somebody else's time slice. (The shortest slice of the kernels looked at is
  /// 700 us; the longest procedure that a caller yields for is not much above kExchangeMicroseconds.)
  static constexpr std::uint64_t kLongYieldUs = 100;
  /// And is not risked again before so many times its cost have passed, half a second at most: so it takes a twentieth
  /// of the time (more only beside slices of over 25 ms), and less and less where it happens again.
  static constexpr std::uint32_t kCostFactor = 20;
  /// Processor time between two yields of a caller that exchanges. With nobody else there a yield costs 0.3 us; if
  /// somebody took the processor, the next one comes when the caller has had it for as long: so it keeps half of it.
  static constexpr std::uint64_t kOfferUs = 80;
  /// Calls that no poller picked up. A poller that was switched out is back after somebody else's time slice, so it is
  /// tried again after 16 ms at most; a try in vain costs 20 us, an eighth of a per cent of that.
  static constexpr DistrustSpans kExchangeSpans{.accident_us = 1'000, .first_us = 1'000, .most_us = 16'000};
  /// Yields and loans that did not bring the result, or brought it at a cost.
  static constexpr DistrustSpans kYieldSpans{.accident_us = 1'000, .first_us = 1'000, .most_us = 500'000};

  /// Whether to exchange at once: a poller scans the word, in a stint and turn that have been chosen before and have
  /// kept their word since.
  [[nodiscard]] bool trusts(std::uint32_t polled) const noexcept { return trusted_ == polled; }
  /// So that the next call goes by choose(), however it goes.
  void trust_no_longer() noexcept { trusted_ = kNothing; }

  /// What a caller knows when trusts() says no.
  struct Situation {
    PolledHint polled;
    EStackHint estack;
    std::uint16_t processor;  ///< The caller's own.
    Moment now;
  };
  /// H8. `may_yield`: the binding's gate and the thread's scheduling let it.
  [[nodiscard]] Way choose(const Situation& at, bool may_yield) noexcept {
    trusted_ = kNothing;
    if (at.polled.polled()) {
      if (is_processor(at.processor) && at.polled.processor() == at.processor) {
        if (at.polled.guest() && !loan_.holds(at.now)) return Way::lend;
      } else if (at.polled.stint() != missed_ || !exchange_.holds(at.now)) {
        trusted_ = at.polled.bits();
        believed_ = at.polled.stint();
        return Way::exchange;
      }
    }
    return may_yield && would_yield(at.now) && at.estack.is_beside(at.processor) ? Way::yield : Way::sleep;
  }
  /// Whether it would yield if the E-stack sat beside it: the E-stack is told, and follows only those who would.
  [[nodiscard]] bool would_yield(Moment now) const noexcept { return !yield_.holds(now); }

  /// No return within kExchangeMicroseconds or kLendMicroseconds, although the hint that was believed said that
  /// somebody scans.
  void exchange_missed(Moment now) noexcept {
    trust_no_longer();
    missed_ = believed_;
    exchange_.failed(now);
  }
  /// No return within kLendMicroseconds, although the hint said that a guest is here.
  void loan_missed(Moment now) noexcept { loan_.failed_at_a_cost(now, kLendMicroseconds, kCostFactor); }
  /// For a caller that exchanges: whether to yield once before it rings, so that a thread that waits for the processor
  /// need not wait for the end of a time slice. `ran_us`: the caller's processor time so far. A caller that has been
  /// off the processor as long as on it has given others enough, and counts again from 0 to what it may keep.
  [[nodiscard]] bool offer_due(std::uint64_t ran_us, Moment now) noexcept {
    const std::uint64_t ran = ran_us - offered_at_;
    if (ran < owed_us_) return false;
    if (now.since(offered_) < 2 * ran) return true;
    offered(owed_us_, ran_us, now);
    return false;
  }
  /// The yield ended `now`.
  void offered(std::uint64_t took_us, std::uint64_t ran_us, Moment now) noexcept {
    offered_ = now.ticks;
    offered_at_ = ran_us;
    owed_us_ = std::clamp(took_us, kOfferUs, kMostOfferUs);
  }
  /// What came of yielding, which has ended `now`.
  void yielded(bool returned, std::uint64_t took_us, Moment now) noexcept {
    if (took_us > kLongYieldUs) {
      yield_.failed_at_a_cost(now, took_us, kCostFactor);
    } else if (!returned) {
      yield_.failed(now);
    }
  }

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};  ///< Not what a hint can be.
  static constexpr std::uint64_t kMostOfferUs = 100'000;

  std::uint64_t trusted_ = kNothing;
  std::uint16_t believed_ = 0;    ///< The stint of the hint that was last believed,
  std::uint16_t missed_ = 0;      ///< and of the last one that was so in vain.
  std::uint64_t offered_ = 0;     ///< ticks()
  std::uint64_t offered_at_ = 0;  ///< By the thread's processor time.
  std::uint64_t owed_us_ = kOfferUs;
  Distrust<kExchangeSpans> exchange_;
  Distrust<kYieldSpans> yield_;
  Distrust<kYieldSpans> loan_;
};

}  // namespace lrpc::shim
