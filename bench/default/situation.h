// The situations in which the default is compared with the fixed gates: what callers do, where everybody is, and who
// else is there.
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
  std::chrono::nanoseconds think{};      ///< Between two calls, computing.
  std::chrono::nanoseconds sleep{};      ///< The same, asleep.
  std::chrono::nanoseconds burst{};      ///< Calls for so long, then sleeps for as long; zero: all the time.
  std::chrono::nanoseconds procedure{};  ///< What the procedure computes.
  unsigned slow_each = 1;                ///< One call in so many goes to that procedure, the others to a quick one.
  unsigned started = 0;                  ///< Calls in flight at once (client.start()); 0: synchronous ones.
  enum class Shape : std::uint8_t {
    plain,
    chain,      ///< The server's procedure calls a second server.
    callbacks,  ///< The server's procedure calls the client back, whose procedure calls the server.
  } shape = Shape::plain;
  unsigned threads = 1;  ///< Of each client.
  unsigned clients = 1;
  unsigned servers = 1;  ///< Each client calls one of them.
  bool in_turn = false;  ///< Each client calls all of them, one after the other.

  // Where they are.
  enum class Where : std::uint8_t {
    anywhere,
    one_processor,    ///< All on the same.
    apart,            ///< Clients on one, servers on another.
    apart_later,      ///< The same from the first third of the run on; anywhere before.
    server_confined,  ///< Servers on one, clients anywhere.
    clients_apart,    ///< Each client on one of its own, servers anywhere.
    moved,            ///< The client goes from one to the next every 10 ms.
    one_offline,      ///< In the second third of the run the machine has one less.
  } where = Where::anywhere;
  unsigned among = 0;  ///< All of them may use just so many processors; 0: all that there are.

  // Who else is there, and what they are worth.
  unsigned hogs = 0;
  bool third_party = false;
  bool build = false;
  double processors = 0;  ///< Quota of the control group of clients and servers, in processors; 0: none.
  double weight = 1;      ///< Weight of that group, in units of the ordinary one.
  bool fifo = false;      ///< Callers are SCHED_FIFO.

  bool operator==(const Situation&) const = default;
};

/// Characters.
inline constexpr int kLongestName = 40;

/// Every situation, also those that this machine cannot have. Names are unique.
[[nodiscard]] std::vector<Situation> situations();
/// Of each kind the plainest, for a short look.
[[nodiscard]] std::vector<Situation> plainest();
/// Those whose name the regular expression (ECMAScript) finds something in. Errors: invalid_argument: it is none.
Result<std::vector<Situation>> chosen(std::vector<Situation> all, const std::string& expression);
/// Why a machine with so many processors cannot have it, or has it already; nothing if it can.
[[nodiscard]] std::optional<std::string> obstacle(const Situation& situation, unsigned processors);

}  // namespace lrpc::bench
