// Several clients that call at the same time: how many round trips a second they make together.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "contender.h"
#include "turns.h"

namespace lrpc::bench {

/// A client process around one contender. Constructed in the bench's own process.
class Caller {
 public:
  /// Returns once it has connected.
  static Result<std::unique_ptr<Caller>> create(std::unique_ptr<Contender> contender, const Seat& seat,
                                                const TickClock& clock);

  /// Lets all callers call at the same time, each for `length` after some untimed calls. Returns their round trips a
  /// second, summed.
  static Result<double> rate(std::span<Caller* const> callers, std::chrono::nanoseconds length, const TickClock& clock);

 private:
  struct Desk {
    TurnDesk turns;
    std::chrono::nanoseconds length;
    std::uint64_t calls;
    std::uint64_t ticks;
  };
  Caller(std::unique_ptr<Contender> contender, TurnTaker<Desk> process)
      : contender_(std::move(contender)), process_(std::move(process)) {}
  static void call(Contender& contender, const TickClock& clock, Desk& desk);

  std::unique_ptr<Contender> contender_;
  TurnTaker<Desk> process_;
};

/// The throughput of some callers in a round of slices.
struct Rates {
  double together = 0;  ///< Round trips a second of all callers at the same time.
  double alone = 0;     ///< Round trips a second of one caller while the others sleep; the mean over several of them.
};
/// together / (n × alone): 1 if no caller slows down another.
[[nodiscard]] double scaling(const Rates& rates, std::size_t callers) noexcept;

/// The numbers of clients to measure, up to `most`: 1, 2, 4, 8, ... and `most`.
[[nodiscard]] std::vector<std::size_t> client_counts(std::size_t most);

}  // namespace lrpc::bench
