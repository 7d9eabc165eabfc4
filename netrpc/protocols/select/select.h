// SELECT: from a procedure identifier to the server that has it, and from a call to one of a host's channels (RPC in
// the x-Kernel §3.2). It pairs nothing and repeats nothing: the transaction protocol below does.
#pragma once

#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct SelectOptions {
  std::size_t channels = 8;                  ///< Calls under way to one host; more wait, first come first served.
  std::size_t queue = 4096;                  ///< So many to one host; the next ones are completed with limit_reached.
  Duration idle = std::chrono::seconds(30);  ///< After that time without sessions a host's channels are closed.
};

/// A SELECT over `below`, a transaction service whose sessions carry one call at a time (CHANNEL). Sessions: `open`
/// with participants.remote.host and remote.command; calls are completed with bad_procedure where nobody serves the
/// command. `open_enable` with participants.local.command; 0: all that nobody else serves.
[[nodiscard]] std::unique_ptr<Protocol> make_select(Host& host, std::string name, Protocol& below,
                                                    const SelectOptions& options = {});
[[nodiscard]] ProtocolKind select_kind();

}  // namespace lrpc::netrpc
