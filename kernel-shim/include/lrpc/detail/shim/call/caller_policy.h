// How a caller decides to wait (LRPC §3.4), and the server's hints for that. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::shim {

/// AStackHead::polled: whether a poller scans the word, on which processor, in which stint of polling and which turn of
/// the stint, and whether it fences for its callers when it leaves. Zero: no poller. A hint that the peer can forge: a
/// false one costs the peer's own callers kExchangeMicroseconds a call, or a twentieth of their time (CallerPolicy).
class PolledHint {
 public:
  constexpr PolledHint() noexcept = default;
  constexpr explicit PolledHint(std::uint32_t bits) noexcept : bits_(bits) {}
  /// `stint` counts the poller's stints: a caller that has lost trust in one stint may trust the next. `turn` counts
  /// how often the poller has offered its processor to others: callers see the change and offer theirs, too.
  constexpr PolledHint(std::uint16_t processor, std::uint64_t stint, std::uint64_t turn = 0) noexcept
      : bits_(static_cast<std::uint32_t>(stint % kStints + 1) << kStintShift |
              static_cast<std::uint32_t>(turn % kTurns) << kTurnShift | processor) {}

  /// The same, for a poller whose heavy_shared_fence() the kernel refuses. A caller that leaves a call to this poller
  /// must fence itself, then look at the hint again.
  [[nodiscard]] constexpr PolledHint without_fence() const noexcept { return PolledHint(bits_ | kNoFence); }

  /// The same, for a poller that stays on a processor although callers run there: they should lend it the processor.
  [[nodiscard]] constexpr PolledHint as_guest() const noexcept { return PolledHint(bits_ | kGuest); }

  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  /// A poller scans the word and fences for its callers. One comparison.
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

/// AStackHead::attached: whether an E-stack is associated, and to which processor it is bound, if to any. A hint that
/// the peer can forge. If it is false about the first, the peer's own caller loses a bounded sleep; if about the
/// second, a yield or two.
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

/// The state machine of one A-stack's caller: how it waits for the return.
///
///   exchange   a poller scans the word on another processor: poll, for at most kExchangeMicroseconds. At each of the
///              poller's turns, offer this processor to others, as the poller has done with its own
///   lend       a poller scans the word on this processor, as a guest: sleep, for at most kLendMicroseconds, so that
///              the poller runs
///   yield      the E-stack is bound to this processor: yield the processor, for at most kYieldMicroseconds
///   sleep      in all other cases
///
/// It belongs to the thread that holds the A-stack. The call path only asks trusts(), and records no success.
class CallerPolicy {
 public:
  enum class Way : std::uint8_t { exchange, lend, yield, sleep };

  /// How long a caller polls before it gives up the exchange: about two futex round trips. After that a sleep would
  /// have cost less than the polling.
  static constexpr std::uint32_t kExchangeMicroseconds = 20;
  /// A guest on this processor serves other callers for PollerPolicy::kYieldUs, then this one. The sleep is longer than
  /// a clock tick: for a shorter one the kernel programs the timer, which takes 10 to 16 us in a virtual machine.
  static constexpr std::uint32_t kLendMicroseconds = 5'000;
  /// If the E-stack is on this processor, two switches bring the result. If it is on its way here, that takes 20 us (a
  /// move takes as long as a wake-up). If the caller slept then, the kernel would wake it on another processor.
  static constexpr std::uint32_t kYieldMicroseconds = 20;
  /// If a yield takes longer, another thread got a time slice. (The shortest slice of the kernels examined is 700 us;
  /// the longest procedure that a caller yields for is not much above kExchangeMicroseconds.)
  static constexpr std::uint64_t kLongYieldUs = 100;
  /// After such a yield the caller does not yield for this many times its cost, at most half a second. So such yields
  /// take a twentieth of the time (more only if slices are over 25 ms), and less each time that one follows another.
  static constexpr std::uint32_t kCostFactor = 20;
  /// Processor time between two yields of a caller that exchanges. If no other thread wants the processor, a yield
  /// costs 0.3 us. If one took it, the caller yields again after it has run for as long: so it keeps half of the
  /// processor.
  static constexpr std::uint64_t kOfferUs = 80;
  /// For calls that no poller picked up. A poller that was switched out returns after another thread's time slice, so
  /// the caller tries again after at most 16 ms. A try in vain costs 20 us, an eighth of a per cent of that.
  static constexpr DistrustSpans kExchangeSpans{.accident_us = 1'000, .first_us = 1'000, .most_us = 16'000};
  /// For yields and loans that brought no result, or cost too much.
  static constexpr DistrustSpans kYieldSpans{.accident_us = 1'000, .first_us = 1'000, .most_us = 500'000};

  /// Whether to exchange at once: choose() has chosen that by exactly this hint, and the trust has not been withdrawn
  /// since.
  [[nodiscard]] bool trusts(std::uint32_t polled) const noexcept { return trusted_ == polled; }
  /// Makes the next call ask choose().
  void trust_no_longer() noexcept { trusted_ = kNothing; }

  /// What a caller knows when trusts() says no.
  struct Situation {
    PolledHint polled;
    EStackHint estack;
    std::uint16_t processor;  ///< The caller's own.
    Moment now;
  };
  /// H8. `may_yield`: the binding's gate and the thread's scheduling policy allow a yield.
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
  /// Whether the caller would yield if the E-stack were on its processor. The caller says so in its call: an E-stack
  /// moves only to callers that would.
  [[nodiscard]] bool would_yield(Moment now) const noexcept { return !yield_.holds(now); }

  /// There was no return within kExchangeMicroseconds, although the hint said that a poller scans.
  void exchange_missed(Moment now) noexcept {
    trust_no_longer();
    missed_ = believed_;
    exchange_.failed(now);
  }
  /// There was no return within kLendMicroseconds, although the hint said that a guest is here.
  void loan_missed(Moment now) noexcept { loan_.failed_at_a_cost(now, kLendMicroseconds, kCostFactor); }
  /// For a caller that exchanges: whether to yield once before it rings, so that a thread that waits for the processor
  /// need not wait for the end of a time slice. `ran_us`: the caller's processor time so far. If the caller has been
  /// off the processor as long as on it, others have had enough: the count begins again.
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
  /// How the yields went, the last of which has ended `now`.
  void yielded(bool returned, std::uint64_t took_us, Moment now) noexcept {
    if (took_us > kLongYieldUs) {
      yield_.failed_at_a_cost(now, took_us, kCostFactor);
    } else if (!returned) {
      yield_.failed(now);
    }
  }

 private:
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};  ///< No hint has this value.
  static constexpr std::uint64_t kMostOfferUs = 100'000;

  std::uint64_t trusted_ = kNothing;
  std::uint16_t believed_ = 0;    ///< The stint of the last hint that was believed,
  std::uint16_t missed_ = 0;      ///< and of the last one that was believed in vain.
  std::uint64_t offered_ = 0;     ///< ticks()
  std::uint64_t offered_at_ = 0;  ///< In the thread's processor time.
  std::uint64_t owed_us_ = kOfferUs;
  Distrust<kExchangeSpans> exchange_;
  Distrust<kYieldSpans> yield_;
  Distrust<kYieldSpans> loan_;
};

}  // namespace lrpc::shim
