// The forwarding SELECT: a host that does not serve a command passes the request on to the one that does (RPC in the
// x-Kernel §3.2: "we have built an alternative selection layer that does forwarding").
#pragma once

#include <map>
#include <memory>
#include <string>

#include "netrpc/protocols/select/select.h"

namespace lrpc::netrpc {

struct ForwardingSelectOptions {
  ChannelPoolOptions select;
  std::map<std::uint16_t, HostAddress> routes;  ///< Which host serves a command that nobody serves here.
  std::uint8_t hops =
      4;  ///< A request that so many hosts have forwarded is not forwarded any more: they forward in a circle.
};

/// SELECT's service with a protocol number of its own. A call is executed at most once, because it crosses each hop at
/// most once. A server sees the host that forwarded the request as its peer. Requests that would take more buffers than
/// the next host's fair share are not forwarded: limit_reached.
[[nodiscard]] Result<std::unique_ptr<Protocol>> make_forwarding_select(Host& host, std::string name, Protocol& below,
                                                                       const ForwardingSelectOptions& options);
/// FORWARDING_SELECT(channels = 8, queue = 4096, hops = 4, routes = "7=10.0.0.3, 8=10.0.0.4").
[[nodiscard]] ProtocolKind forwarding_select_kind();

}  // namespace lrpc::netrpc
