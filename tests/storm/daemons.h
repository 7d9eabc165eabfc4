// The daemons that the storm has: an lrpcd, or two machines with an lrpcd and an lrpc-netd each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ledger.h"
#include "lrpc/detail/shim/system/fd.h"
#include "process_info.h"

namespace lrpc::storm {

/// A program that the storm kills, stops, asks to end, and starts again. It never ends by itself.
struct Daemon {
  std::string name{};  ///< For people.
  Role role = Role::none;
  std::vector<std::string> command{};
  std::string log{};
  /// Whether one that was killed holds what the next one needs: the kernel may let go of it much later.
  std::function<bool()> lingers{};
  pid_t pid = 0;                 ///< 0: it does not run.
  bool up = false;               ///< It has said that it is ready, and nobody has ended it since.
  bool asked = false;            ///< To end, in order.
  UniqueFd ready{};              ///< Where it says so.
  std::uint64_t again_at = 0;    ///< ns; when it is started next.
  std::uint64_t ended = 0;       ///< What the conductor had worked when the storm ended it.
  std::uint64_t disturb_at = 0;  ///< ns; 0: not drawn.
  std::uint64_t ends = 0;        ///< That the storm has brought about.
  ProcessCounts counts{};        ///< When it held nothing but what it always holds: after round 0.
};

/// What an lrpc-netd says about itself.
struct NetworkState {
  std::uint64_t paths = 0;     ///< Remote bindings of its machine's clients.
  std::uint64_t bindings = 0;  ///< Of the other machine's, to its servers.
};

struct Machine {
  std::string nameserver{};  ///< lrpcd's socket.
  std::string address{};     ///< Of its lrpc-netd. Empty: there is no network.
  std::string state{};       ///< The file into which that writes its state.
  Daemon lrpcd{};
  Daemon netd{};
  std::uint64_t sockets = 0;  ///< lrpcd's, after round 0.
  ProcessCounts survivor{};   ///< Of its surviving server, after round 0.
};

/// The machines of a storm whose files lie in `directory`: one, or two with lrpc-netds between them, whose addresses no
/// other process of this machine uses. Writes the graphs and keys of these.
[[nodiscard]] std::vector<Machine> make_machines(const std::string& directory, const std::string& lrpcd,
                                                 const std::string& netd, bool network, Fault fault);

/// Asks a running lrpc-netd for its state. The answer is there some time later.
void ask_network_state(const Machine& machine);
/// What it has said since it was asked; nothing yet, or half of it: nothing.
[[nodiscard]] std::optional<NetworkState> network_state(const Machine& machine);

}  // namespace lrpc::storm
