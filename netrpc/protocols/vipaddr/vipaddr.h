// VIPaddr: chooses between the Ethernet and IP when a session is opened, and is not involved afterwards. The opener
// gets the lower protocol's own session, and its messages come straight from there (RPC in the x-Kernel §4.3).
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// Makes VIPaddr over `ethernet` and `ip`, which outlive it. `hosts`: the table of VIP hosts (viphosts.h), or null.
std::unique_ptr<Protocol> make_vipaddr(Host& host, std::string name, Protocol& ethernet, Protocol& ip,
                                       Protocol* hosts = nullptr);

/// VIPADDR over an ETH-like, an IP-like and, if wanted, VIPHOSTS.
ProtocolKind vipaddr_kind();

}  // namespace lrpc::netrpc
