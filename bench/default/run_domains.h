// What the processes of a run do: servers, those that pass calls on, and clients.
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

/// What the processes of a run share.
struct RunDesk {
  static constexpr unsigned kMostCallers = 8;
  static constexpr std::size_t kMostWindows = 400;
  std::atomic<std::uint32_t> servers_ready;
  std::atomic<std::uint32_t> callers_ready;
  std::atomic<std::uint64_t> begin;       ///< ticks; 0: not yet.
  std::atomic<std::uint64_t> clients_ns;  ///< Processor time of all clients, while they called.
  struct Caller {
    Histogram calls;
    double medians[kMostWindows];
  } callers[kMostCallers];
};

/// Of a run, for each of its processes.
struct RunTerms {
  const Situation& situation;
  shim::Gate gate;
  const TickClock& clock;
  std::chrono::nanoseconds length;
  RunDesk& desk;
};

/// How long a process of a run may take for anything.
inline constexpr std::chrono::seconds kRunPatience{30};

/// Serves Bench over each of `ends`, for ever; only if that fails, it returns: 1.
int serve_bench(std::vector<UniqueFd> ends, const RunTerms& terms);
/// The same for Nested. `behind` leads to a server of Bench; no descriptor: there is none.
int serve_nested(std::vector<UniqueFd> ends, UniqueFd behind, const RunTerms& terms);
/// A client over `ends`, one for each server that it calls; its callers have the desk's places from `first` on.
/// 0 once all of them have called for as long as the run is to be, 1: something failed.
int call_in_run(std::vector<UniqueFd> ends, unsigned first, const RunTerms& terms);

}  // namespace lrpc::bench
