// When a poller polls, and where (LRPC §3.4). Pure: no system call, no clock.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::server {

/// The state machine of a poller: stints of polling, and the times between them.
///
/// In a stint it yields every kYieldUs. If no other thread is there, that costs 0.3 us; how long it takes shows exactly
/// whether another thread wanted the processor, and for how long. So a thread that shares the processor waits for 100
/// us at most and then gets a whole time slice, and nothing has to be guessed from the load of the machine.
class PollerPolicy {
 public:
  static constexpr std::uint64_t kYieldUs = 100;
  /// At a yield of the poller a new turn begins if there have been this many calls since the last yield: then callers
  /// in an exchange look up, and yield, too. That costs them 1 to 2 us; without this bound, a caller that computes for
  /// 100 us between calls would pay that at every call.
  static constexpr std::uint64_t kCallsInTurn = 5;
  /// A yield, or a gap with an involuntary switch, of at most this length counts as nobody's: an interrupt, a kernel
  /// thread, or the E-stack that brings an offer.
  static constexpr std::uint64_t kOthersUs = 20;
  /// A thread that runs for longer than this at once has work for a time slice: the poller is evicted.
  static constexpr std::uint64_t kEvictionUs = 1'000;
  /// The poller, unless it is a guest, is also evicted if others take more than an eighth of a stint that has lasted
  /// longer than kShareAfterUs, in however small pieces: they have regular work, and found no idle processor for it, as
  /// callers and pollers have them all.
  static constexpr std::uint64_t kShare = 8;
  static constexpr std::uint64_t kShareAfterUs = 2'000;
  /// How long not to poll after an eviction; it doubles. If a stint lasts kYieldUs, a thread that always runs loses a
  /// twentieth of its time at first, and 1 in 160 from the fourth time on.
  static constexpr std::uint64_t kFirstBackOffUs = 2'000;
  static constexpr std::uint64_t kLastBackOffUs = 16'000;
  /// The pause is short again if the stint lasted this long before its eviction, or the last eviction was this long
  /// ago.
  static constexpr std::uint64_t kSoundStintUs = 20'000;
  static constexpr std::uint64_t kForgetUs = 100'000;
  /// Least time between two steps aside, each of which costs a move: callers may lie about their processor in each
  /// call.
  static constexpr std::uint64_t kBetweenStepsUs = 2'000;

  PollerPolicy() noexcept = default;
  /// Numbers its stints from `stint` on.
  explicit PollerPolicy(std::uint64_t stint) noexcept : stint_(stint) {}

  /// `guest`: on a processor with callers, which may take it often: only a loss of over kEvictionUs at once is an
  /// eviction then (GuestPolicy).
  void begin(shim::Moment now, bool guest = false) noexcept {
    guest_ = guest;
    began_ = yielded_ = now.ticks;
    lost_us_ = last_lost_us_ = 0;
    evicted_ = false;
    ++stint_;
  }
  /// Goes on, on another processor. To callers this is a new stint, so those that distrust the one before begin anew.
  void go_on(shim::Moment now, bool guest) noexcept {
    guest_ = guest;
    yielded_ = now.ticks;
    ++stint_;
  }
  /// The number of the stint, for PolledHint.
  [[nodiscard]] std::uint64_t stint() const noexcept { return stint_; }
  /// The number of the turn, for PolledHint: how often the processor has been offered after kCallsInTurn calls or more.
  [[nodiscard]] std::uint64_t turn() const noexcept { return turn_; }
  /// After yielded(). `hits`: the calls so far. Whether a new turn begins.
  [[nodiscard]] bool turns(std::uint64_t hits) noexcept {
    const std::uint64_t calls = hits - hits_;
    hits_ = hits;
    if (calls < kCallsInTurn) return false;
    ++turn_;
    return true;
  }

  [[nodiscard]] bool yield_due(shim::Moment now) const noexcept {
    return !now.before(yielded_ + kYieldUs * now.ticks_per_us);
  }
  void yielded(std::uint64_t took_us, shim::Moment now) noexcept {
    yielded_ = now.ticks;
    others_had(took_us, now);
  }
  /// Others had the processor for `us`.
  void others_had(std::uint64_t us, shim::Moment now) noexcept {
    if (us <= kOthersUs) return;
    lost_us_ += us;
    last_lost_us_ = us;
    const std::uint64_t stint_us = now.since(began_);
    if (us > kEvictionUs || (!guest_ && stint_us > kShareAfterUs && kShare * lost_us_ > stint_us)) evicted_ = true;
  }
  [[nodiscard]] bool evicted() const noexcept { return evicted_; }
  /// How long the stint has lasted.
  [[nodiscard]] std::uint64_t lasted_us(shim::Moment now) const noexcept { return now.since(began_); }
  /// The stint is over. Returns when the next one may begin, in ticks(); 0: at once.
  [[nodiscard]] std::uint64_t end(shim::Moment now) noexcept {
    if (!evicted_) return 0;
    const bool late = evicted_at_ == 0 || now.since(evicted_at_) > kForgetUs;
    const bool sound = late || now.since(began_) > kSoundStintUs + last_lost_us_;
    back_off_us_ = sound ? kFirstBackOffUs : std::min(2 * back_off_us_, kLastBackOffUs);
    evicted_at_ = now.ticks;
    return now.after(back_off_us_);
  }
  /// A caller says that it is on the poller's processor. False: the poller has moved only just now, so the caller goes.
  [[nodiscard]] bool may_step_aside(shim::Moment now) noexcept {
    if (stepped_ != 0 && now.since(stepped_) < kBetweenStepsUs) return false;
    stepped_ = now.ticks;
    return true;
  }

 private:
  std::uint64_t stint_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t began_ = 0;    ///< ticks()
  std::uint64_t yielded_ = 0;  ///< ticks()
  std::uint64_t lost_us_ = 0;
  std::uint64_t last_lost_us_ = 0;
  std::uint64_t back_off_us_ = kFirstBackOffUs;  ///< The last one.
  std::uint64_t evicted_at_ = 0;                 ///< ticks(); 0: never.
  std::uint64_t stepped_ = 0;                    ///< ticks(); 0: never.
  bool evicted_ = false;
  bool guest_ = false;
};

/// The processors that busy callers run on, by their own word: no poller should poll there. Thread-safe.
class CallerProcessors {
 public:
  /// A caller that has not called from a processor for this long does not count as running there.
  static constexpr std::uint64_t kRecentUs = 2'000;

  /// `who` calls from `processor` now, and no more from `before`. A mark that another caller has set there since stays.
  void called_from(const void* who, std::uint16_t processor, std::uint16_t before, shim::Moment now) noexcept {
    if (before != processor && shim::is_processor(before) && who_[before].load(std::memory_order_relaxed) == who)
      seen_[before].store(0, std::memory_order_relaxed);
    if (!shim::is_processor(processor)) return;
    who_[processor].store(who, std::memory_order_relaxed);
    seen_[processor].store(now.ticks, std::memory_order_relaxed);
  }
  [[nodiscard]] bool on(std::uint16_t processor, shim::Moment now) const noexcept {
    if (!shim::is_processor(processor)) return false;
    const std::uint64_t seen = seen_[processor].load(std::memory_order_relaxed);
    return seen != 0 && now.since(seen) < kRecentUs;
  }

 private:
  std::array<std::atomic<std::uint64_t>, CPU_SETSIZE> seen_{};  ///< ticks(); 0: nobody.
  std::array<std::atomic<const void*>, CPU_SETSIZE> who_{};     ///< Compared, never followed.
};

}  // namespace lrpc::server
