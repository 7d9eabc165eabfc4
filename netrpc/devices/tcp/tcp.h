// TCP: messages as records in TCP's streams (RFC 5531 §11), for Sun RPC. A session is with a host and a port, as UDP's
// with `peer_ports = any`, and has one connection at a time.
// A connection belongs to the network namespace of the thread that connects: the one that pushes the message, which may
// be any thread that waits in the host's engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct TcpOptions {
  std::optional<std::uint16_t> port;  ///< Where this host accepts connections; none: it only connects.
  std::string address;                ///< Of this host; empty: any of its addresses.
  std::size_t peers = 256;            ///< Sessions at one time; peers make at most three quarters of them, and one host
                                      ///< a quarter.
  std::size_t longest = 128 * 1024;   ///< Bytes of a record, at most kLongest.
  Duration idle = std::chrono::minutes(5);  ///< A connection ends after so long without traffic.

  static constexpr std::size_t kLongest = 1024 * 1024;
  static constexpr std::size_t kMostPeers = 65536;
};

/// Errors: invalid_argument (the address, an option), not_supported (a simulated host), system_error. Inside the
/// monitor.
Result<std::unique_ptr<Protocol>> make_tcp(Host& host, std::string name, const TcpOptions& options);

/// TCP(port, address, peers, longest, idle).
ProtocolKind tcp_kind();

}  // namespace lrpc::netrpc
