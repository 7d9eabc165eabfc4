// The situations in which the default is compared with the fixed gates: what callers do, where the processes run, and
// what else runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

struct Situation {
  std::string name{};

  // What callers do.
  std::chrono::nanoseconds think{};      ///< Computes this long between two calls.
  std::chrono::nanoseconds sleep{};      ///< Sleeps this long between two calls.
  std::chrono::nanoseconds burst{};      ///< Calls for this long, then sleeps for as long; zero: calls without such
                                         ///< breaks.
  std::chrono::nanoseconds procedure{};  ///< The procedure computes this long.
  unsigned slow_each = 1;                ///< One call in this many goes to that procedure, the others to a quick one.
  unsigned started = 0;                  ///< Calls in flight at the same time (client.start()); 0: synchronous calls.
  enum class Shape : std::uint8_t {
    plain,
    chain,      ///< The server's procedure calls a second server.
    callbacks,  ///< The server's procedure calls the client back; the client's procedure calls the server.
  } shape = Shape::plain;
  unsigned threads = 1;  ///< Of each client.
  unsigned clients = 1;
  unsigned servers = 1;  ///< Each client calls one of them.
  bool in_turn = false;  ///< Each client calls all of them, one after the other.

  // Where they run.
  enum class Where : std::uint8_t {
    anywhere,
    one_processor,    ///< All on the same processor.
    apart,            ///< Clients on one processor, servers on another.
    apart_later,      ///< The same, but only after the first third of the run; before that, anywhere.
    server_confined,  ///< Servers on one processor, clients anywhere.
    clients_apart,    ///< Each client on a processor of its own, servers anywhere.
    moved,            ///< The client moves to the next processor every 10 ms.
    one_offline,      ///< In the second third of the run one processor is offline.
  } where = Where::anywhere;
  unsigned among = 0;  ///< All processes may use only this many processors; 0: all.

  // What else runs, and what share of the processors clients and servers get.
  unsigned hogs = 0;
  bool third_party = false;
  bool build = false;
  double processors = 0;  ///< Quota of the control group of clients and servers, in processors; 0: none.
  double weight = 1;      ///< Weight of that group, as a multiple of the default weight.
  bool fifo = false;      ///< Callers have the policy SCHED_FIFO.

  bool operator==(const Situation&) const = default;
};

/// In characters.
inline constexpr int kLongestName = 40;

/// Every situation, including those that this machine cannot have. Names are unique.
[[nodiscard]] std::vector<Situation> situations();
/// The plainest situation of each kind, for a brief run.
[[nodiscard]] std::vector<Situation> plainest();
/// The situations whose name contains a match of the regular expression (ECMAScript). Errors: invalid_argument: the
/// expression is invalid.
Result<std::vector<Situation>> chosen(std::vector<Situation> all, const std::string& expression);
/// Why a machine with this many processors cannot have the situation, or why it would show nothing new; nothing
/// otherwise.
[[nodiscard]] std::optional<std::string> obstacle(const Situation& situation, unsigned processors);

}  // namespace lrpc::bench
