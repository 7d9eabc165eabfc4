// A client that calls back to back and records its latency over time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "core/contender.h"
#include "core/ticks.h"
#include "core/turns.h"
#include "report/histogram.h"

namespace lrpc::bench {

class LrpcDomains;

/// Some consecutive calls, and the median of their times.
struct CallWindow {
  std::uint64_t begun;   ///< ticks_begin() before the first call.
  std::uint64_t median;  ///< In ticks.
};

/// What the client records. It lies in Shared; it is too large for a stack.
struct TimelineRecord {
  static constexpr std::size_t kCallsPerWindow = 50;
  static constexpr std::size_t kBuckets = 600;
  static constexpr std::size_t kMostWindows = 1'000'000;
  static constexpr std::chrono::milliseconds kBucket{5};

  TurnDesk turns;
  std::atomic<bool> stop;
  std::uint64_t begun;  ///< Ticks at the beginning of the first bucket.
  std::array<Histogram, kBuckets> buckets;
  std::uint64_t windows_used;
  std::array<CallWindow, kMostWindows> windows;
};

/// A client that calls from start() to stop(). Constructed in the bench's own process.
class TimelineClient {
 public:
  /// Starts the client on `seat` and binds with the adaptive gate. Returns once it has connected.
  static Result<std::unique_ptr<TimelineClient>> create(std::shared_ptr<LrpcDomains> domains, const Seat& seat,
                                                        const TickClock& clock);
  /// Lets the client make 10,000 untimed calls (or as many as 0.3 s allow), then record its calls.
  void start() noexcept { process_->turns.begin(); }
  /// Returns once the client has ended its calls.
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
