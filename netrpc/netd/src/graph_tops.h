// Which instances of a graph the daemon uses itself.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netd {

/// How the daemon uses Sun RPC.
struct SunUse {
  bool served = false;  ///< Programs of this machine.
  bool by_udp = false;  ///< Programs of other hosts are called over UDP,
  bool by_tcp = false;  ///< or over TCP.
  [[nodiscard]] bool any() const noexcept { return served || by_udp || by_tcp; }
};

struct SunTop {
  std::string name;
  bool udp = false;    ///< Stands on UDP, directly or through others.
  bool tcp = false;    ///< Stands on TCP, likewise.
  bool calls = false;  ///< Its peers may have any port, as Sun RPC's servers do.
};

struct GraphTops {
  std::string calls;                ///< The instance for calls between lrpc-netds.
  std::vector<std::string> groups;  ///< The instances of GROUP: names that clients can import from.
  std::vector<SunTop> sun;          ///< Sun RPC programs are served through all of them, if any are.
  std::string sun_udp;              ///< Programs of other hosts are called over UDP through this one; empty: none are.
  std::string sun_tcp;              ///< The same over TCP.
};

/// `service`: the instance for calls; empty: the last that gives a transaction service, without those of Sun RPC and,
/// unless there is no other, those below a GROUP. `sun`: programs are served through every SUN_SELECT, and called
/// through the last that can. Errors: invalid_argument (there is none; or calls through it, or through a GROUP, are not
/// at most once, or not with one peer a host; or a GROUP stands on what cannot call groups, on what may wait for ever,
/// or on another AUTH; or its members cannot be a group's; or a USER's options are wrong, or its name another USER's).
/// The text may begin with the number of a line, as those of GraphDescription::parse(). A pure function.
[[nodiscard]] Result<GraphTops> choose_tops(const netrpc::GraphDescription& graph, std::string_view service,
                                            const SunUse& sun);

}  // namespace lrpc::netd
