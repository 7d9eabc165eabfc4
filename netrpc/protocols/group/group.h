// GROUP: a name for several hosts. Who calls through it calls all of them at once (Bhatti and Schlichting §4.2).
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// GROUP(members = [HOST, ...]) over a transaction service that can call groups: SELECT over a composition with GRPC
/// and SYNC. Whatever host `open` names, the session goes to the members; each has them in a group address of its own
/// (Host::groups()). Servers need none, but `open_enable` goes to what stands below. It has no header and no sessions.
/// Errors when it is made: those of Groups::set(); invalid_argument (no member, or one that is no IPv4 address).
[[nodiscard]] ProtocolKind group_kind();

}  // namespace lrpc::netrpc
