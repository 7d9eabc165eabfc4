// VIP, virtual IP: IP's service without IP where it is not needed (RPC in the x-Kernel §3.1). It has no header: at open
// it chooses the Ethernet, IP or both, and then costs one test of a message's length.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

struct VipOptions {
  std::size_t sessions = 4096;               ///< At once, with those that peers make.
  Duration idle = std::chrono::seconds(60);  ///< After which an unused session is dropped.
  /// How long IP is used after the Ethernet has said that a host cannot be reached.
  Duration avoid = std::chrono::seconds(10);
};

/// Makes VIP over `ethernet` and `ip`, which outlive it. `hosts`: the table of VIP hosts (viphosts.h); null: every host
/// on the local Ethernet is taken to speak VIP, as in the paper. Errors: invalid_argument.
Result<std::unique_ptr<Protocol>> make_vip(Host& host, std::string name, Protocol& ethernet, Protocol& ip,
                                           Protocol* hosts = nullptr, const VipOptions& options = {});

/// VIP over an ETH-like, an IP-like and, if wanted, VIPHOSTS.
ProtocolKind vip_kind();

}  // namespace lrpc::netrpc
