// What the processes of a run do: servers, servers that pass calls on, and clients.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/ticks.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/fd.h"
#include "report/histogram.h"
#include "situation.h"

namespace lrpc::bench {

/// The memory that the processes of a run share.
struct RunDesk {
  static constexpr unsigned kMostCallers = 8;
  static constexpr std::size_t kMostWindows = 400;
  std::atomic<std::uint32_t> servers_ready;
  std::atomic<std::uint32_t> callers_ready;
  std::atomic<std::uint64_t> begin;       ///< Ticks at which the run begins; 0: it has not begun.
  std::atomic<std::uint64_t> clients_ns;  ///< Processor time of all clients while they call.
  struct Caller {
    Histogram calls;
    double medians[kMostWindows];
  } callers[kMostCallers];
};

/// The conditions of a run, which all of its processes know.
struct RunTerms {
  const Situation& situation;
  shim::Gate gate;
  const TickClock& clock;
  std::chrono::nanoseconds length;
  RunDesk& desk;
};

/// The longest time that a process of a run may take for anything.
inline constexpr std::chrono::seconds kRunPatience{30};

/// Serves Bench over each of `ends`, for ever. Returns only after a failure: 1.
int serve_bench(std::vector<UniqueFd> ends, const RunTerms& terms);
/// The same for Nested. `behind` leads to a server of Bench; it is empty if there is none.
int serve_nested(std::vector<UniqueFd> ends, UniqueFd behind, const RunTerms& terms);
/// A client over `ends`, one for each server that it calls. Its callers use the desk's entries from `first` on. Returns
/// 0 once all of them have called for the length of the run, 1 after a failure.
int call_in_run(std::vector<UniqueFd> ends, unsigned first, const RunTerms& terms);

}  // namespace lrpc::bench
