// M_RPC: the monolithic Sprite RPC (RPC in the x-Kernel §3, §4): SELECT-CHANNEL-FRAGMENT's service in one protocol.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc::mrpc {

/// `mrpc = M_RPC over eth;` over any datagram protocol. Clients open with participants.remote.{host, command}, servers
/// enable participants.local.command (0: every command that nobody else has enabled; the session tells which).
ProtocolKind mrpc_kind();

}  // namespace lrpc::netrpc::mrpc
