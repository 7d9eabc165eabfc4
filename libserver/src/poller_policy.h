// When a poller polls, and where (LRPC §3.4). Pure: no system call, no clock.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "lrpc/shim/distrust.h"
#include "lrpc/shim/processor.h"

namespace lrpc::server {

/// The state machine of a poller: stints of polling, and the times between them.
///
/// In a stint it offers its processor to others every kYieldUs. Alone that costs 0.3 us; and how long it takes says
/// exactly whether somebody else wanted the processor, and for how long. So who shares a processor with it waits for
/// 100 us at most, and gets a whole time slice for that; and nobody need guess from the load of the machine.
class PollerPolicy {
 public:
  static constexpr std::uint64_t kYieldUs = 100;
  /// A yield, or a gap with an involuntary switch, up to this is nobody's: an interrupt, a kernel thread, the E-stack
  /// that brings an offer.
  static constexpr std::uint64_t kOthersUs = 20;
  /// Somebody who takes longer in one go is no passer-by: he has a time slice's work.
  static constexpr std::uint64_t kEvictionUs = 1'000;
  /// And who takes more than a third of a stint's time, in however small pieces, leaves too little of it to poll in.
  static constexpr std::uint64_t kShare = 3;
  static constexpr std::uint64_t kShareAfterUs = 2'000;
  /// Not to poll for so long after an eviction, doubling: with kYieldUs a stint, a hog loses a twentieth at first, and
  /// 1 in 160 from the fourth time on.
  static constexpr std::uint64_t kFirstBackOffUs = 2'000;
  static constexpr std::uint64_t kLastBackOffUs = 16'000;
  /// A stint that lasted so long without an eviction: the processor is ours again.
  static constexpr std::uint64_t kSoundStintUs = 20'000;

  void begin(shim::Moment now) noexcept {
    began_ = yielded_ = now.ticks;
    lost_us_ = 0;
    evicted_ = false;
    ++stint_;
  }
  /// Of the stint, for PolledHint.
  [[nodiscard]] std::uint64_t stint() const noexcept { return stint_; }

  [[nodiscard]] bool yield_due(shim::Moment now) const noexcept {
    return now.ticks >= yielded_ + kYieldUs * now.ticks_per_us;
  }
  void yielded(std::uint64_t took_us, shim::Moment now) noexcept {
    yielded_ = now.ticks;
    others_had(took_us, now);
  }
  /// Others had the processor, for so long.
  void others_had(std::uint64_t us, shim::Moment now) noexcept {
    if (us <= kOthersUs) return;
    lost_us_ += us;
    const std::uint64_t stint_us = now.since(began_);
    if (us > kEvictionUs || (stint_us > kShareAfterUs && kShare * lost_us_ > stint_us)) evicted_ = true;
  }
  [[nodiscard]] bool evicted() const noexcept { return evicted_; }
  /// The stint is over. When the next one may begin, in ticks().
  [[nodiscard]] std::uint64_t end(shim::Moment now) noexcept {
    if (!evicted_) {
      if (now.since(began_) > kSoundStintUs) back_off_us_ = 0;
      return 0;
    }
    back_off_us_ = back_off_us_ == 0 || now.since(began_) > kSoundStintUs ? kFirstBackOffUs
                                                                          : std::min(2 * back_off_us_, kLastBackOffUs);
    return now.after(back_off_us_);
  }

 private:
  std::uint64_t stint_ = 0;
  std::uint64_t began_ = 0;    ///< ticks()
  std::uint64_t yielded_ = 0;  ///< ticks()
  std::uint64_t lost_us_ = 0;
  std::uint64_t back_off_us_ = 0;  ///< The last one; 0: none of late.
  bool evicted_ = false;
};

/// Which processors callers sit on, by their own word: there no poller has any business. Thread-safe.
class CallerProcessors {
 public:
  /// Who has not called for so long from there does not sit there any more.
  static constexpr std::uint64_t kRecentUs = 2'000;

  /// A call has come from there, on an A-stack whose last call came from `before`; that place is its caller's no more.
  void called_from(std::uint16_t processor, std::uint16_t before, shim::Moment now) noexcept {
    if (before != processor && before < CPU_SETSIZE) seen_[before].store(0, std::memory_order_relaxed);
    if (processor < CPU_SETSIZE) seen_[processor].store(now.ticks, std::memory_order_relaxed);
  }
  [[nodiscard]] bool on(std::uint16_t processor, shim::Moment now) const noexcept {
    if (processor >= CPU_SETSIZE) return false;
    const std::uint64_t seen = seen_[processor].load(std::memory_order_relaxed);
    return seen != 0 && now.since(seen) < kRecentUs;
  }

 private:
  std::array<std::atomic<std::uint64_t>, CPU_SETSIZE> seen_{};
};

}  // namespace lrpc::server
