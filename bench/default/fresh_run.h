// One run as a user has it: fresh server and client processes, private bindings, nothing but the gate chosen; and what
// every 10 ms of it were like.
#pragma once

#include <chrono>
#include <vector>

#include "core/placement.h"
#include "core/ticks.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "report/histogram.h"
#include "situation.h"

namespace lrpc::bench {

/// What came of a run. Times in nanoseconds.
struct FreshRun {
  static constexpr std::chrono::milliseconds kWindow{10};

  std::vector<double> windows;  ///< Medians of the calls of each window, the worst thread's; NaN: no call in it.
  Histogram calls;              ///< In ticks.
  double processor = 0;         ///< Processor time of clients and servers, in seconds for each second.
  Histogram third_party;        ///< Its pieces of work, or a build's.
  double hogs = 0;              ///< Processor time of all hogs, in seconds for each second.
};

/// Runs once, for `length`. Precondition: the bench has one thread, and nothing is an obstacle(). Blocks for `length`
/// and some 50 ms; a process that hangs is killed after half a minute. Errors: not_permitted, not_supported: this user
/// or kernel cannot have that situation; others.
Result<FreshRun> run_fresh(const Situation& situation, shim::Gate gate, const Cores& cores, const TickClock& clock,
                           std::chrono::milliseconds length);

}  // namespace lrpc::bench
