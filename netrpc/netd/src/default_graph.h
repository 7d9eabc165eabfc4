// The graph that lrpc-netd has when it is given none.
#pragma once

#include <string>

#include "lrpc/netrpc/address.h"

namespace lrpc::netd {

struct DefaultGraph {
  bool udp = false;           ///< For users without CAP_NET_RAW.
  bool authenticated = true;  ///< With AUTH.
  std::string interface;      ///< For ETH.
  netrpc::HostAddress address;
  std::string keys;
};

/// Text for GraphDescription::parse().
[[nodiscard]] std::string default_graph(const DefaultGraph& choice);

}  // namespace lrpc::netd
