// The graph that lrpc-netd has when it is given none.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/netrpc/address.h"

namespace lrpc::netd {

struct DefaultGraph {
  bool udp = false;           ///< For users without CAP_NET_RAW.
  bool authenticated = true;  ///< With AUTH.
  std::string interface;      ///< For ETH.
  netrpc::HostAddress address;
  std::string keys;
  std::uint16_t sun_port = 0;       ///< Of Sun RPC's servers here; 0: there are none.
  netrpc::HostAddress sun_address;  ///< Where they are; not known: at all addresses of this machine.
  bool calls_sun = false;           ///< Sun RPC programs of other hosts are called.
};

/// Text for GraphDescription::parse().
[[nodiscard]] std::string default_graph(const DefaultGraph& choice);

}  // namespace lrpc::netd
