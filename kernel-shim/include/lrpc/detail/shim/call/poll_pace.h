// How often a caller that polls looks at the word. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace lrpc::shim {

/// The pace of one A-stack's caller. Each look takes the word's cache line away from a server that is about to return.
/// With longer delays between looks that happens less often, but the caller sees the return later. Which costs more
/// depends on the machine and on the two processors (docs/PERFORMANCE.md). So the pace is found by trial: 1, 2, 4, ...
/// delays between two looks, for kBlocks blocks of calls each. The pace with the fastest block is kept for kHeldCalls.
///
/// A peer can only cause a bad choice, which costs its own callers Limits::most delays a call.
class PollPace {
 public:
  /// In poll_delay()s.
  struct Limits {
    std::uint32_t wait = 0;  ///< How long to poll for a call's return.
    std::uint32_t most = 1;  ///< The longest delay between two looks.
  };
  /// The longest delay between two looks: calls end late by half of it on average. On the machine where long delays
  /// gain most, 55 ns are best.
  static constexpr std::uint32_t kMostNs = 80;
  /// Only blocks of calls are timed: a time stamp at each call would change what it measures. In the fastest of a few
  /// blocks neither thread was switched out.
  static constexpr std::uint16_t kCallsInBlock = 16;
  static constexpr std::uint8_t kBlocks = 8;
  /// With three trials, a fortieth of the calls run at another pace than the best. At 150 ns a call, the pace follows a
  /// change within 3 ms.
  static constexpr std::uint16_t kHeldCalls = 16'000;

  /// How many poll_delay()s come before each look but the first.
  [[nodiscard]] unsigned delays() const noexcept { return delays_; }
  /// Tells that a call has returned within Limits::wait. True: call tell_time() now.
  [[nodiscard]] bool returned() noexcept { return --calls_left_ == 0; }
  /// `now`: ticks().
  void tell_time(std::uint64_t now, std::uint32_t most) noexcept {
    const std::uint64_t block = now - std::exchange(began_, now);
    if (blocks_left_ == 0) {
      least_ = kNone;
      return begin_trial(1);
    }
    calls_left_ = kCallsInBlock;
    if (block < least_) {
      least_ = block;
      best_ = delays_;
    }
    if (--blocks_left_ != 0) return;
    if (const unsigned next = 2U * delays_; next <= std::min(most, kMostDelays)) return begin_trial(next);
    delays_ = best_;
    calls_left_ = kHeldCalls;
  }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kMostDelays = 64;

  void begin_trial(unsigned delays) noexcept {
    delays_ = static_cast<std::uint8_t>(delays);
    calls_left_ = kCallsInBlock;
    blocks_left_ = kBlocks;
  }

  std::uint64_t began_ = 0;      ///< When the present block began: ticks().
  std::uint64_t least_ = kNone;  ///< Ticks of the fastest block since the trials began,
  std::uint8_t best_ = 1;        ///< and its pace.
  std::uint8_t delays_ = 1;
  std::uint8_t blocks_left_ = 0;              ///< Of the present trial; 0: the pace is kept.
  std::uint16_t calls_left_ = kCallsInBlock;  ///< Calls until tell_time() is due.
};

}  // namespace lrpc::shim
