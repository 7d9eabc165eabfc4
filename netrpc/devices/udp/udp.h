// UDP: messages in UDP datagrams, one port a protocol number: for hosts and users without CAP_NET_RAW.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct UdpOptions {
  std::uint32_t ports = 24000;  ///< The port of protocol number 0.
  std::string address;          ///< Of this host, to send from and to be reached at; empty: any of its addresses.
  std::size_t peers = 4096;     ///< Sessions at one time.
};

/// Errors: invalid_argument (the address), not_supported (a simulated host). Inside the monitor.
Result<std::unique_ptr<Protocol>> make_udp(Host& host, std::string name, const UdpOptions& options);

/// UDP(ports, address, peers).
ProtocolKind udp_kind();

}  // namespace lrpc::netrpc
