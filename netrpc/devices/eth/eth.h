// ETH: messages in Ethernet frames, over the kernel's packet sockets. A device: no protocol below.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct EthOptions {
  std::string interface;         ///< Empty: that of the default route, else the only one that is up besides loopback.
  std::uint32_t types = 0xa700;  ///< The ethertype of protocol number 0.
  std::size_t peers = 4096;      ///< Sessions at one time.
};

/// Needs CAP_NET_RAW (as soon as a protocol number is enabled or a session opened). Errors: invalid_argument (the
/// interface), not_supported (a simulated host), system_error. Inside the monitor.
Result<std::unique_ptr<Protocol>> make_eth(Host& host, std::string name, const EthOptions& options);

/// ETH(interface, types, peers).
ProtocolKind eth_kind();

}  // namespace lrpc::netrpc
