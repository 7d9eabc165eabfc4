// How VIP and VIPaddr choose between the Ethernet and IP (RPC in the x-Kernel §3.1).
#pragma once

#include <cstddef>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc::vip {

/// The two ways to a host, and whoever knows which hosts speak VIP.
struct Ways {
  Protocol& ethernet;
  Protocol& ip;
  Protocol* hosts = nullptr;

  /// Whether `peer` speaks VIP for `protocol`. Without a table every host is believed to.
  [[nodiscard]] bool speaks(HostAddress peer, ProtocolNumber protocol) const;
  /// Whether `peer` can be reached over the Ethernet: it speaks VIP, and ARP resolves it.
  [[nodiscard]] bool local(HostAddress peer, ProtocolNumber protocol) const;
  /// Where the host of a passive session is not given: the devices, then the table.
  [[nodiscard]] HostAddress peer_of(Session& lower, const ParticipantSet& participants) const;
  /// Whether the messages that come through `lower`, an Ethernet session, are those of another host than `peer` that
  /// ARP says is still there: two addresses of one machine. Only one of them can have them: the other is reached over
  /// IP.
  [[nodiscard]] bool taken(const Session& lower, HostAddress peer) const;
  /// The longest message that goes over the Ethernet. 0: it does not say.
  [[nodiscard]] std::size_t ethernet_maximum() const;
  /// The largest message that `high` will ever push. One that does not say may push anything.
  [[nodiscard]] static std::size_t advertised(Protocol& high);
  /// Answers what is asked of a virtual protocol but concerns those below.
  [[nodiscard]] Errc control(control::Request& request) const;
  /// Enables both for `high` and advertises that this host can be reached so; or none. `name`: of who does, for errors.
  [[nodiscard]] Status enable(Protocol& high, const ParticipantSet& participants, const std::string& name) const;
  void disable(Protocol& high, const ParticipantSet& participants) const noexcept;
};

/// What a graph puts below VIP and VIPaddr behind ETH and IP: the table of VIP hosts, or null. Errors:
/// invalid_argument.
[[nodiscard]] Result<Protocol*> table_of_hosts(const InstanceParts& parts);

}  // namespace lrpc::netrpc::vip
