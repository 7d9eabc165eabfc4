// IP: messages in IP datagrams of a protocol number of their own, over the kernel's raw sockets: the kernel routes,
// fragments and reassembles.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct IpOptions {
  std::string address;       ///< This host's, to send from and receive at; empty: any of its addresses.
  std::size_t peers = 4096;  ///< Sessions at one time.
};

/// Needs CAP_NET_RAW (as soon as a protocol number is enabled or a session opened). Errors: invalid_argument (the
/// address), not_supported (a simulated host). Inside the monitor.
Result<std::unique_ptr<Protocol>> make_ip(Host& host, std::string name, const IpOptions& options);

/// IP(address, peers).
ProtocolKind ip_kind();

}  // namespace lrpc::netrpc
