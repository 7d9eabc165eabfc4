// The paired block runner. The call and its floor alternate in blocks of about a millisecond, so that the host
// influences both alike (clock speed, placement of virtual processors, neighbours).
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "contender.h"
#include "placement.h"

namespace lrpc::bench {

/// A contender, and the seat of the client during its blocks.
struct Seated {
  Contender& contender;
  Seat client;
};

/// What a run has collected. All times are nanoseconds per round trip.
struct Samples {
  std::vector<double> floor_blocks;  ///< Mean of each floor block; one more than there are call blocks.
  std::vector<double> call_blocks;   ///< Mean of each call block.
  std::vector<double> single_calls;  ///< Calls timed one by one, without the cost of reading the clock.
  std::uint64_t calls = 0;           ///< Timed calls in both kinds of block; floor and warm-up not counted.
};

struct RunnerOptions {
  std::chrono::microseconds block{1000};         ///< The target; a block is a whole number of calls, at least one.
  std::chrono::microseconds warm_up{200};        ///< Untimed calls before each block.
  std::chrono::microseconds singles{250};        ///< Calls timed one by one after each call block.
  std::uint64_t most_singles = 2000;             ///< At most this many of them.
  std::uint64_t first_warm_up_calls = 10'000;    ///< Before the first block, so that adaptive parts have adapted...
  std::chrono::milliseconds first_warm_up{150};  ///< ...or for this long, whichever ends first.
};

/// One row's measurement, in the client process: start(), then step() as often as wanted, then take().
class PairedRun {
 public:
  PairedRun(Seated call, Seated floor, const TickClock& clock, const RunnerOptions& options);

  /// Warms up both contenders, finds their block sizes, and runs the first floor block.
  void start();
  /// Runs a call block and then a floor block. Returns how long the call block took.
  std::chrono::duration<double> step();
  [[nodiscard]] Samples take() && { return std::move(samples_); }

 private:
  struct Side {
    Contender& contender;
    Seat client;
    std::uint64_t block_calls = 1;
    std::uint64_t warm_up_calls = 1;
    std::uint64_t single_calls = 1;
  };
  void first_warm_up(Side& side);
  void size_blocks(Side& side);
  double timed_block(Side& side);  ///< Nanoseconds of one block of back-to-back calls.
  void enter(Side& side);
  void floor_block();

  Side call_;
  Side floor_;
  TickClock clock_;
  RunnerOptions options_;
  std::vector<std::uint64_t> ticks_;
  Samples samples_;
};

}  // namespace lrpc::bench
