// The table of hosts that speak VIP, kept by advertisement (RPC in the x-Kernel §3.1: "a table of hosts on the local
// network that support VIP", "a broadcast-based protocol that advertizes the protocols that a given host supports").
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

struct VipHostsOptions {
  Duration lifetime = std::chrono::seconds(90);  ///< Of an advertisement; about three are sent in it.
  std::size_t hosts = 1024;                      ///< In the table at once; the others are reached over IP.
};

/// Makes VIPHOSTS over `ethernet`, which outlives it. VIP and VIPaddr ask it with control::SpeaksVip and
/// ResolveReverse, and tell it with control::AdvertiseVip. Errors: invalid_argument; those of the Ethernet's
/// open_enable and open.
Result<std::unique_ptr<Protocol>> make_viphosts(Host& host, std::string name, Protocol& ethernet,
                                                const VipHostsOptions& options = {});

/// VIPHOSTS over an ETH-like.
ProtocolKind viphosts_kind();

}  // namespace lrpc::netrpc
