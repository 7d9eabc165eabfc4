// The storm: hundreds of hosts call each other over a stack of protocols while packets and hosts fail in many ways, and
// everything that a call promises is checked:
//   - no call is executed more than once, by all lives of its server together;
//   - every call ends: with the right answer, or with an error that is true (a call that is said not to have been
//     executed never is), and not long after its timeout;
//   - no more calls fail than the faults explain (storm_bound.h), and every caller makes calls to the end;
//   - when all is quiet again, nothing is left: no session, no record, no message, no event but housekeeping.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "netrpc/sim/fault_schedule.h"
#include "netrpc/sim/world.h"

namespace lrpc::netrpc {

struct StormOptions {
  std::uint64_t seed = 1;
  std::uint64_t calls = 20'000;  ///< At most 2^32.
  std::uint32_t hosts = 200;     ///< Each calls, and is called.
  std::uint32_t segments = 4;    ///< Ethernets, over which the hosts are distributed.
  std::uint32_t peers = 8;       ///< How many servers a host calls.
  std::uint32_t at_once = 4;     ///< Calls that each host has under way.
  SimLink link;                  ///< Every wire's.
  FaultOptions faults;
  bool repeats = false;  ///< The stack may execute a call several times (REQUEST_REPLY), and that alone is not checked.
  bool finds_corruption =
      false;  ///< The stack drops messages with flipped bits (AUTH), so that everything is checked all the same.
  double refused = 0;  ///< The share of calls that the stack is known not to carry, beside those that faults fail.
  std::size_t largest = 16000;                 ///< Bytes of a request or a reply, if the stack can.
  Duration timeout = std::chrono::seconds(2);  ///< Of a call; one in ten has none.
  /// How often the stack sends a request, and its reply, within the timeout, at least, while nobody answers
  /// (tries_of()).
  unsigned tries = 5;
  Duration idle = std::chrono::minutes(10);  ///< After this long without calls no state may be left.
  /// If no call ends for this long, those under way have hung.
  Duration patience = std::chrono::minutes(10);
  std::function<void(std::string_view)> trace;  ///< A line for everything that happens, if given.
};

struct StormReport {
  std::uint64_t calls = 0;
  std::uint64_t answered = 0;
  std::uint64_t failed = 0;        ///< call_failed, call_lost; or any error, if flipped bits may cause it.
  std::uint64_t aborted = 0;       ///< call_aborted.
  std::uint64_t not_executed = 0;  ///< host_unreachable, limit_reached.
  std::uint64_t abandoned = 0;     ///< The caller crashed.
  double most_failing = 0;         ///< The largest share of calls that may fail, see storm_bound.h.
  std::uint64_t executed = 0;
  std::uint64_t crashes = 0;
  std::uint64_t partitions = 0;
  std::uint64_t pauses = 0;
  SimCounters wires;
  Time virtual_time{};
  double seconds = 0;
  std::vector<std::string> violations;  ///< The first few of them, each for a person to read.
  std::uint64_t violation_count = 0;
};

/// Composes the stack on a host (with SimHost::add() or own()) and returns its highest protocol, a transaction service,
/// and through `all` every protocol whose statistics must be empty in the end, higher ones first. Called inside the
/// monitor.
using ComposeStack = std::function<Protocol&(SimHost& host, std::vector<Protocol*>& all)>;

/// Runs it to the end. Single-threaded; takes seconds. Same options, same run.
[[nodiscard]] StormReport run_storm(const StormOptions& options, const ComposeStack& compose);

}  // namespace lrpc::netrpc
