// SELECT: from a procedure identifier to the server that has it, and from a call to one of a host's channels (RPC in
// the x-Kernel §3.2). It pairs nothing and repeats nothing: the transaction protocol below does.
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"
#include "netrpc/protocols/select/channel_pools.h"

namespace lrpc::netrpc {

/// A SELECT over `below`, a transaction service whose sessions carry one call at a time (CHANNEL). Sessions: `open`
/// with participants.remote.host and remote.command; calls are completed with bad_procedure where nobody serves the
/// command. `open_enable` with participants.local.command; 0: all that nobody else serves.
[[nodiscard]] std::unique_ptr<Protocol> make_select(Host& host, std::string name, Protocol& below,
                                                    const ChannelPoolOptions& options = {});
[[nodiscard]] ProtocolKind select_kind();

}  // namespace lrpc::netrpc
