// SELECT: finds the server for a procedure identifier, and for a call one of the channels to its host (RPC in the
// x-Kernel §3.2). The transaction protocol below pairs requests with replies and repeats them.
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"
#include "netrpc/protocols/select/channel_pools.h"

namespace lrpc::netrpc {

/// Makes a SELECT over `below`, a transaction service whose sessions carry one call at a time (CHANNEL). `open` with
/// participants.remote.host and remote.command; calls are completed with bad_procedure if nobody serves the command.
/// `open_enable` with participants.local.command; 0: all that nobody else serves.
[[nodiscard]] std::unique_ptr<Protocol> make_select(Host& host, std::string name, Protocol& below,
                                                    const ChannelPoolOptions& options = {});
[[nodiscard]] ProtocolKind select_kind();

}  // namespace lrpc::netrpc
