// Measures one row in a client process of its own: Google Benchmark's manual-time loop, one call block and one floor
// block a turn.
#pragma once

#include <chrono>
#include <string>

#include "contender.h"
#include "placement.h"
#include "report/row.h"
#include "runner.h"

namespace lrpc::bench {

struct MeasureOptions {
  int pairs = 300;                           ///< Call blocks of a row, each between two floor blocks.
  std::chrono::milliseconds budget{3000};    ///< No block begins later, so that a disturbed machine costs blocks, not
                                             ///< minutes...
  int least_pairs = 20;                      ///< ...unless there are fewer blocks than this,
  std::chrono::milliseconds patience{8000};  ///< and then none begins after `patience`.
  std::chrono::seconds limit{30};            ///< A client that takes longer is killed, and the row fails.
  RunnerOptions runner{};

  static MeasureOptions quick() {
    return {.pairs = 60,
            .budget = std::chrono::milliseconds(350),
            .patience = std::chrono::milliseconds(1000),
            .runner = {.first_warm_up = std::chrono::milliseconds(50)}};
  }
};

/// Condenses samples: median of the call blocks, p99, min and max of the single calls, median of the paired ratios.
[[nodiscard]] Figures boil_down(const Samples& samples);

/// Forks a client process that runs the pairs. Blocks until it has ended, at most for options.limit.
Result<Figures> measure(const std::string& name, Seated call, Seated floor, const TickClock& clock,
                        const MeasureOptions& options);

}  // namespace lrpc::bench
