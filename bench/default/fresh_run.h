// One run under a user's conditions: new server and client processes, private bindings, no option but the gate; and the
// latency in each window of 10 ms.
#pragma once

#include <chrono>
#include <vector>

#include "core/placement.h"
#include "core/ticks.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "report/histogram.h"
#include "situation.h"

namespace lrpc::bench {

/// The result of a run. Times in nanoseconds.
struct FreshRun {
  static constexpr std::chrono::milliseconds kWindow{10};

  std::vector<double> windows;  ///< The median of each window's calls, of the slowest thread; NaN if the window has no
                                ///< call.
  Histogram calls;              ///< In ticks.
  double processor = 0;         ///< Processor time of clients and servers, in seconds for each second.
  Histogram third_party;        ///< How long its pieces of work, or a build's, took.
  double hogs = 0;              ///< Processor time of all hogs, in seconds for each second.
};

/// Runs once, for `length`. Precondition: the bench has one thread, and obstacle() returns nothing. Blocks for `length`
/// and some 50 ms; a process that hangs is killed after half a minute. Errors: not_permitted, not_supported: this user
/// or kernel cannot have that situation; and others.
Result<FreshRun> run_fresh(const Situation& situation, shim::Gate gate, const Cores& cores, const TickClock& clock,
                           std::chrono::milliseconds length);

}  // namespace lrpc::bench
