// Whether a poller has too much to do, or too little. Pure: no system call, no clock.
#pragma once

#include <bitset>
#include <cstdint>
#include <utility>

#include "lrpc/shim/call/distrust.h"
#include "lrpc/shim/system/processor.h"

namespace lrpc::server {

/// Tells by how many of a poller's scans of its hot set found a call. One caller that calls back to back is met by a
/// third of the scans; where callers queue, each scan meets more than one.
class PollerLoad {
 public:
  static constexpr std::uint64_t kPeriodUs = 1'000;
  /// Crowded for so many periods in a row: another poller is worth its processor. A move costs each caller that moves a
  /// call or two through its E-stack, some tens of microseconds.
  static constexpr unsigned kCrowdedPeriods = 3;
  /// Next to nothing to do for so many in a row: this poller's processor is worth more than its calls are quicker.
  static constexpr unsigned kQuietPeriods = 20;
  /// Quiet is a call in so many scans, and with room for that is half as many calls as scans: the two together are not
  /// crowded, so calls are not moved to and fro.
  static constexpr std::uint64_t kQuietScans = 8;
  /// A further poller that has been switched out or has given all it had away does not begin again for so long: its
  /// callers do as well, or another thread wants its processor.
  static constexpr std::uint64_t kBetweenTriesUs = 500'000;

  void begin(std::uint64_t hits, shim::Moment now) noexcept {
    *this = {};
    start_period(hits, now);
  }
  /// There were so many more scans, and `hits` calls so far. Whether a period has ended.
  [[nodiscard]] bool scanned(std::uint64_t scans, std::uint64_t hits, shim::Moment now) noexcept {
    scans_ += scans;
    if (now.since(began_) < kPeriodUs) return false;
    const std::uint64_t calls = hits - hits_;
    crowded_ = calls >= scans_ ? crowded_ + 1 : 0;
    quiet_ = kQuietScans * calls < scans_ ? quiet_ + 1 : 0;
    has_room_ = 2 * calls < scans_;
    start_period(hits, now);
    return true;
  }
  [[nodiscard]] bool crowded() const noexcept { return crowded_ >= kCrowdedPeriods; }
  [[nodiscard]] bool quiet() const noexcept { return quiet_ >= kQuietPeriods; }
  [[nodiscard]] bool has_room() const noexcept { return has_room_; }

 private:
  void start_period(std::uint64_t hits, shim::Moment now) noexcept {
    hits_ = hits;
    scans_ = 0;
    began_ = now.ticks;
  }
  std::uint64_t began_ = 0;  ///< ticks()
  std::uint64_t hits_ = 0;   ///< At the period's beginning.
  std::uint64_t scans_ = 0;
  unsigned crowded_ = 0;  ///< Periods in a row.
  unsigned quiet_ = 0;
  bool has_room_ = false;
};

/// Of the A-stacks that it is asked about, those of every second caller, by the processors that they are called from: so
/// that a thread with many calls in flight stays in one place. Who does not say where he is is taken for a caller each.
class EverySecondCaller {
 public:
  bool operator()(std::uint16_t processor) noexcept {
    if (!shim::is_processor(processor)) return next();
    if (!seen_[processor]) {
      seen_[processor] = true;
      goes_[processor] = next();
    }
    return goes_[processor];
  }

 private:
  bool next() noexcept { return std::exchange(second_, !second_); }

  std::bitset<CPU_SETSIZE> seen_;
  std::bitset<CPU_SETSIZE> goes_;
  bool second_ = false;
};

}  // namespace lrpc::server
