// SUN_CALL: which program, version and procedure a call is for, and whether its message was accepted or denied (RFC
// 5531 §9, struct call_body up to the credential, and reply_stat). SUN_CALL and SUN_SELECT above it are the SUN.SELECT
// of RPC in the x-Kernel §5; docs/SUNRPC.md says why it is two layers.
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"
#include "netrpc/protocols/select/channel_pools.h"

namespace lrpc::netrpc {

/// Makes a SUN_CALL over `below`, a transaction service whose sessions carry one call at a time (REQUEST_REPLY,
/// CHANNEL). `open` with participants.remote.host, program, version and procedure. Calls are completed with
/// not_permitted if the server has denied the credential, and with not_supported if it has another version of Sun RPC.
/// One protocol is served, the one that enables first; each request's participants.local has the request's numbers.
[[nodiscard]] std::unique_ptr<Protocol> make_sun_call(Host& host, std::string name, Protocol& below,
                                                      const ChannelPoolOptions& options = {});
[[nodiscard]] ProtocolKind sun_call_kind();

}  // namespace lrpc::netrpc
