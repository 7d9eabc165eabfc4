// GROUP: a name for several hosts. A call through it goes to all of them at once (Bhatti and Schlichting §4.2).
#pragma once

#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// GROUP(members = [HOST, ...]) over a transaction service that can call groups: SELECT over a composition with GRPC
/// and SYNC. Whatever host `open` names, the session goes to the members. Each GROUP gives its members a group address
/// of its own (Host::groups()). Servers need no GROUP, but `open_enable` is passed to the protocol below. It has no
/// header and no sessions. Errors when it is made: those of group_members().
[[nodiscard]] ProtocolKind group_kind();

/// The members that GROUP's options name. A pure function. Errors: those of Groups::check(); invalid_argument (no
/// member, or one that is no IPv4 address).
[[nodiscard]] Result<std::vector<HostAddress>> group_members(const Options& options);

}  // namespace lrpc::netrpc
