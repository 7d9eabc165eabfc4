// One run as a user has it: fresh server and client processes, a private binding, nothing but the gate chosen; and what
// every 10 ms of it were like.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/histogram.h"
#include "core/placement.h"
#include "core/ticks.h"
#include "lrpc/client/import/binding.h"

namespace lrpc::bench {

/// What callers do, how many there are, and who else is there.
struct Situation {
  std::string name;
  std::chrono::nanoseconds think{};      ///< Between two calls, computing.
  std::chrono::nanoseconds sleep{};      ///< The same, asleep.
  std::chrono::nanoseconds burst{};      ///< Calls for so long, then sleeps for as long; zero: all the time.
  std::chrono::nanoseconds procedure{};  ///< What the procedure computes.
  unsigned started = 0;                  ///< Calls in flight at once (client.start()); 0: synchronous ones.
  unsigned threads = 1;                  ///< Of each client.
  unsigned clients = 1;
  unsigned servers = 1;  ///< Clients take turns among them.
  unsigned hogs = 0;
  bool third_party = false;
  enum class Where : std::uint8_t { anywhere, one_processor, apart, server_confined, moved } where = Where::anywhere;
  double processors = 0;  ///< Quota of the control group of clients and servers, in processors; 0: none.
  double weight = 1;      ///< Weight of that group, in units of the ordinary one.
  bool fifo = false;      ///< Callers are SCHED_FIFO.
};

/// What came of a run. Times in nanoseconds.
struct FreshRun {
  static constexpr std::chrono::milliseconds kWindow{10};

  std::vector<double> windows;  ///< Medians of the calls of each window, the worst thread's; NaN: no call in it.
  Histogram calls;              ///< In ticks.
  Histogram third_party;
  double hogs = 0;  ///< Processor time of all hogs, in seconds for each second.
};

/// Runs once, for `length`. Precondition: the bench has one thread. Blocks for `length` and some 50 ms. Errors:
/// not_permitted, not_supported: this user or kernel cannot have that situation; others.
Result<FreshRun> run_fresh(const Situation& situation, Gate gate, const Cores& cores, const TickClock& clock,
                           std::chrono::milliseconds length);

}  // namespace lrpc::bench
