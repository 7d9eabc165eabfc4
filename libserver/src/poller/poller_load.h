// Whether a poller has too much to do, or too little. Pure: no system call, no clock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lrpc/detail/shim/call/distrust.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::server {

/// What a poller did between two looks at the clock.
struct PollerLook {
  std::uint64_t scans = 0;  ///< Of the hot set.
  std::uint64_t empty = 0;  ///< Of these, those that found no call.
  std::uint64_t calls = 0;
  std::uint64_t ticks = 0;  ///< How long all of that took.
};

/// Measures how busy a poller is. It was idle for the time of its empty scans. How long one of these takes is known
/// from looks without a call; before the first such look, the poller counts as busy.
class PollerLoad {
 public:
  static constexpr std::uint64_t kPeriodUs = 1'000;
  /// After this many crowded periods in a row, another poller is worth its processor. A caller that moves to it loses
  /// some tens of microseconds: a call or two go through its E-stack.
  static constexpr unsigned kCrowdedPeriods = 3;
  /// After this many quiet periods in a row, what this poller saves its callers is not worth a processor.
  static constexpr unsigned kQuietPeriods = 20;
  /// Quiet: busy for less than an eighth of the time. Has room: busy for less than half of it. So the two together are
  /// not crowded.
  static constexpr std::uint64_t kQuietShare = 8;
  static constexpr std::uint64_t kRoomShare = 2;

  void begin(shim::Moment now) noexcept {
    const std::uint64_t known = empty_scan_;
    *this = {};
    empty_scan_ = known;
    began_ = now.ticks;
  }
  /// Whether a period has ended with this look.
  [[nodiscard]] bool looked(const PollerLook& look, shim::Moment now) noexcept {
    if (look.calls == 0 && look.scans != 0) {
      const std::uint64_t each = std::max<std::uint64_t>(look.ticks / look.scans, 1);
      empty_scan_ = empty_scan_ == 0 ? each : std::min(empty_scan_, each);
    }
    scans_ += look.scans;
    empty_ += look.empty;
    calls_ += look.calls;
    if (now.since(began_) < kPeriodUs) return false;
    const std::uint64_t passed = now.ticks - began_;
    const std::uint64_t idle = std::min(empty_ * empty_scan_, passed);
    const std::uint64_t busy = passed - idle;
    crowded_ = calls_ >= scans_ ? crowded_ + 1 : 0;
    quiet_ = kQuietShare * busy < passed ? quiet_ + 1 : 0;
    has_room_ = kRoomShare * busy < passed;
    scans_ = empty_ = calls_ = 0;
    began_ = now.ticks;
    return true;
  }
  /// Callers queue: for some periods each scan has met a call or more.
  [[nodiscard]] bool crowded() const noexcept { return crowded_ >= kCrowdedPeriods; }
  [[nodiscard]] bool quiet() const noexcept { return quiet_ >= kQuietPeriods; }
  [[nodiscard]] bool has_room() const noexcept { return has_room_; }

 private:
  std::uint64_t began_ = 0;       ///< ticks()
  std::uint64_t empty_scan_ = 0;  ///< Ticks; 0: not known yet.
  std::uint64_t scans_ = 0;       ///< In this period, as are the other two.
  std::uint64_t empty_ = 0;
  std::uint64_t calls_ = 0;
  unsigned crowded_ = 0;  ///< Periods in a row.
  unsigned quiet_ = 0;
  bool has_room_ = false;
};

/// When another poller may begin, after one was switched out, found no processor or gave all its A-stacks away; and
/// when a poller may be a guest again. Pure, except for its atomics: the last poller to write wins.
class StintBackOff {
 public:
  /// The pause after a short disturbance (a thread, or the machine's hypervisor) is a few milliseconds. A thread that
  /// stays is disturbed more and more rarely.
  static constexpr std::uint64_t kFirstUs = 5'000;
  static constexpr std::uint64_t kLastUs = 640'000;
  /// A stint of this length was worth it, whatever has ended it.
  static constexpr std::uint64_t kSoundUs = 200'000;

  void ended(std::uint64_t lasted_us, shim::Moment now) noexcept {
    const std::uint64_t last = back_off_us_.load(std::memory_order_relaxed);
    const std::uint64_t next = lasted_us >= kSoundUs || last == 0 ? kFirstUs : std::min(2 * last, kLastUs);
    back_off_us_.store(next, std::memory_order_relaxed);
    not_before_.store(now.after(next), std::memory_order_relaxed);
  }
  [[nodiscard]] bool over(shim::Moment now) const noexcept {
    return !now.before(not_before_.load(std::memory_order_relaxed));
  }

 private:
  std::atomic<std::uint64_t> back_off_us_{0};
  std::atomic<std::uint64_t> not_before_{0};  ///< ticks()
};

/// Selects the A-stacks of every second caller. Callers are told apart by their processors, so a thread with many calls
/// in flight stays with one poller. Callers that do not name their processor count as one in each binding.
class EverySecondCaller {
 public:
  static constexpr std::size_t kMost = 64;  ///< The most calls of operator().

  bool operator()(std::uint16_t processor, const void* binding) noexcept {
    const Caller caller{processor, shim::is_processor(processor) ? nullptr : binding};
    const auto end = callers_.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find(callers_.begin(), end, caller);
    if (found == end) callers_[count_++] = caller;
    return (found - callers_.begin()) % 2 == 1;
  }

 private:
  struct Caller {
    std::uint16_t processor = shim::kNoProcessor;
    const void* binding = nullptr;
    friend bool operator==(const Caller&, const Caller&) = default;
  };
  std::array<Caller, kMost> callers_;
  std::size_t count_ = 0;
};

}  // namespace lrpc::server
