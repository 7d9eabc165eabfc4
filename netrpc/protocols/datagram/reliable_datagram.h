// Reliable datagrams on CHANNEL (RPC in the x-Kernel §3.2: "it is trivial to build a reliable datagram protocol on
// top of CHANNEL"): each message is a request whose reply is empty.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct ReliableDatagramOptions {
  std::size_t channels = 8;     ///< Messages under way to one host.
  std::size_t queue = 64;       ///< Messages to one host that wait for a channel; push() then answers limit_reached.
  std::size_t sessions = 4096;  ///< When there are this many, peers can make no more.
  Duration idle = std::chrono::seconds(30);  ///< Unused sessions and channels are dropped after that time.
  /// Called when a message to `to` was not delivered (bad_procedure: nobody there takes it; limit_reached: that host or
  /// this one has no room), or when that is not known (call_failed). Inside the monitor. May be empty.
  std::function<void(HostAddress to, ProtocolNumber protocol, Errc why)> failed;
};

/// A datagram service over `below`, a transaction service whose sessions carry one call at a time (CHANNEL). A message
/// that push() took is delivered at most once, and exactly once unless `failed` is called. Messages may overtake each
/// other. open() answers name_taken if another protocol has the session to that host. Messages from a host whose
/// address the layers below do not know are refused.
[[nodiscard]] std::unique_ptr<Protocol> make_reliable_datagram(Host& host, std::string name, Protocol& below,
                                                               const ReliableDatagramOptions& options = {});
[[nodiscard]] ProtocolKind reliable_datagram_kind();

}  // namespace lrpc::netrpc
