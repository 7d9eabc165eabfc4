// UDP: messages in UDP datagrams, one port for each protocol number: for hosts and users without CAP_NET_RAW. A session
// is with a host and a port: the port that all hosts use, unless a participant names another one. A session that a
// datagram has made answers to the port from which that came.
#pragma once

#include "lrpc/netrpc/graph.h"
#include "netrpc/devices/udp/ports.h"

namespace lrpc::netrpc {

struct UdpOptions {
  UdpPorts ports;
  std::string address;       ///< This host's, to send from and receive at; empty: any of its addresses.
  std::size_t peers = 4096;  ///< Sessions at one time; those that peers have made: at most three quarters of them.
};

/// Errors: invalid_argument (the address), not_supported (a simulated host). Inside the monitor.
Result<std::unique_ptr<Protocol>> make_udp(Host& host, std::string name, const UdpOptions& options);

/// UDP(ports, local_ports, local_port, peer_ports, address, peers).
ProtocolKind udp_kind();

}  // namespace lrpc::netrpc
