// PSYNC: messages among the members of a group, in the partial order of their contexts (Peterson, Buchholz and
// Schlichting, "Preserving and Using Context Information in Interprocess Communication", TOCS 1989; one of the
// protocols for which RPC in the x-Kernel §3.2 reuses FRAGMENT).
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// PSYNC over any datagram service. A session to the address of a group (Host::groups()) to which this host belongs is
/// a conversation. A push goes to all other members. What they push comes up, through a session to its sender, after
/// everything that the sender had pushed or received before (docs/PROTOCOLS.md).
[[nodiscard]] ProtocolKind psync_kind();

}  // namespace lrpc::netrpc
