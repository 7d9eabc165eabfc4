// The storm's daemons: one lrpcd, or two machines with an lrpcd and an lrpc-netd each.
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
  std::string name{};  ///< For messages.
  Role role = Role::none;
  std::vector<std::string> command{};
  std::string log{};
  /// Whether a killed one still holds what the next one needs: the kernel may release it much later.
  std::function<bool()> lingers{};
  pid_t pid = 0;                 ///< 0: it is not running.
  bool up = false;               ///< It has reported that it is ready, and nobody has ended it since.
  bool asked = false;            ///< It was asked to end, by SIGTERM.
  bool ends_now = false;         ///< A network domain that the storm has ended, or is about to, and that is there yet.
  UniqueFd ready{};              ///< The pipe on which it reports that.
  std::uint64_t again_at = 0;    ///< ns; the next start.
  std::uint64_t ended = 0;       ///< Conductor::worked_ when the storm ended it.
  std::uint64_t disturb_at = 0;  ///< ns; 0: not drawn.
  std::uint64_t ends = 0;        ///< How often the storm has ended it.
  ProcessCounts counts{};        ///< After round 0, when it held only what it always holds.
};

/// What an lrpc-netd says about itself.
struct NetworkState {
  std::uint64_t paths = 0;     ///< Remote bindings of its machine's clients.
  std::uint64_t bindings = 0;  ///< Bindings of the other machine's clients to its servers.
};

struct Machine {
  std::string nameserver{};  ///< lrpcd's socket.
  std::string address{};     ///< Of its lrpc-netd. Empty: there is no network.
  std::string state{};       ///< The file into which the lrpc-netd writes its state.
  Daemon lrpcd{};
  Daemon netd{};
  std::uint64_t sockets = 0;  ///< lrpcd's, after round 0.
  ProcessCounts survivor{};   ///< Of its surviving server, after round 0.
};

/// The machines of a storm whose files are in `directory`: one, or two with an lrpc-netd each, at addresses that no
/// other process of this machine uses. Writes the graphs and keys of the lrpc-netds.
[[nodiscard]] std::vector<Machine> make_machines(const std::string& directory, const std::string& lrpcd,
                                                 const std::string& netd, bool network, Fault fault);

/// Asks a running lrpc-netd for its state. The answer comes some time later.
void ask_network_state(const Machine& machine);
/// The answer since the last question. Nothing: there is none yet, or only a part of it.
[[nodiscard]] std::optional<NetworkState> network_state(const Machine& machine);

}  // namespace lrpc::storm
