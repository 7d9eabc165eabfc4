// PSYNC: messages among the members of a group, in the partial order of their contexts (Peterson, Buchholz and
// Schlichting, "Preserving and Using Context Information in Interprocess Communication", TOCS 1989; one of the
// protocols for which RPC in the x-Kernel §3.2 reuses FRAGMENT).
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// Over any datagram service. A session to a group's address (Host::groups()), of which this host is a member, is a
/// conversation: what is pushed goes to all other members, and what they push comes up through a session to who has
/// pushed it, after everything that its sender had pushed or been given before. docs/PROTOCOLS.md says the rest.
[[nodiscard]] ProtocolKind psync_kind();

}  // namespace lrpc::netrpc
