// A client that calls back to back and keeps what its latency was over time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/contender.h"
#include "core/ticks.h"
#include "core/turns.h"
#include "report/histogram.h"

namespace lrpc::bench {

class LrpcDomains;

/// Consecutive calls, and the median of their times.
struct CallWindow {
  std::uint64_t begun;   ///< ticks_begin() before the first.
  std::uint64_t median;  ///< Ticks.
};

/// What the client writes down. Large: lies in Shared.
struct TimelineRecord {
  static constexpr std::size_t kCallsPerWindow = 50;
  static constexpr std::size_t kBuckets = 600;
  static constexpr std::size_t kMostWindows = 1'000'000;
  static constexpr std::chrono::milliseconds kBucket{5};

  TurnDesk turns;
  std::atomic<bool> stop;
  std::uint64_t begun;  ///< Ticks at the begin of the first bucket.
  std::array<Histogram, kBuckets> buckets;
  std::uint64_t windows_used;
  std::array<CallWindow, kMostWindows> windows;
};

/// Made in the bench's own process. Calls from start() to stop().
class TimelineClient {
 public:
  /// Starts the client on `seat`, binds with the adaptive gate, and makes 10,000 calls (or as many as 0.3 s allow).
  static Result<std::unique_ptr<TimelineClient>> create(std::shared_ptr<LrpcDomains> domains, const Seat& seat,
                                                        const TickClock& clock);
  void start() noexcept { process_->turns.begin(); }
  /// Returns once the client has stopped.
  Status stop();
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  [[nodiscard]] const TimelineRecord& record() const noexcept { return *process_; }

 private:
  TimelineClient(std::unique_ptr<Contender> call, TurnTaker<TimelineRecord> process)
      : call_(std::move(call)), process_(std::move(process)) {}
  std::unique_ptr<Contender> call_;
  TurnTaker<TimelineRecord> process_;
};

}  // namespace lrpc::bench
