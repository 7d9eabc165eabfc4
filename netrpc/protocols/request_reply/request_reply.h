// REQUEST_REPLY: pairs requests and replies over a datagram service, with zero-or-more semantics: the lowest layer of
// Sun RPC (RPC in the x-Kernel §5 "Mix and Match RPCs"; RFC 5531 §9). docs/SUNRPC.md says how.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// RFC 5531 §5 leaves the times to the implementation.
struct RequestReplyOptions {
  Duration give_up = std::chrono::seconds(25);                ///< A call without a reply for this long has failed.
  Duration initial_timeout = std::chrono::milliseconds(500);  ///< Before the first round trip has been measured.
  /// The floor of the timeout, however short the round trip is: each copy of a request may be executed.
  Duration minimum_timeout = std::chrono::milliseconds(50);
  Duration longest_timeout = std::chrono::seconds(5);  ///< It is doubled with every second copy, up to this.
  std::size_t calls = 4096;                            ///< Requests that are being served; more find no room.
  std::size_t calls_per_host = 1024;                   ///< Of one host; it also leaves as many free for others.
  std::uint32_t first_xid = 0;                         ///< For tests; 0: random.
};

/// Makes a REQUEST_REPLY over `below`, a datagram service. `open` with participants.remote.host (and remote.port, if
/// the layer below has ports) makes a client's end. It carries one call at a time; a second one is completed with
/// limit_reached. A call may be executed any number of times, also after it has ended with an error. A reply that is
/// too long for the layer below ends it with call_lost: a server may ask its session for control::MaximumMessage
/// before.
///
/// The header does not name a protocol above. So one protocol is served: the one that enables first.
[[nodiscard]] std::unique_ptr<Protocol> make_request_reply(Host& host, std::string name, Protocol& below,
                                                           const RequestReplyOptions& options = {});
[[nodiscard]] ProtocolKind request_reply_kind();

}  // namespace lrpc::netrpc
