// How VIP and VIPaddr choose between the Ethernet and IP (RPC in the x-Kernel §3.1).
#pragma once

#include <cstddef>
#include <limits>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc::vip {

/// The two protocols that lead to a host, and the table of hosts that speak VIP.
struct Ways {
  Protocol& ethernet;
  Protocol& ip;
  Protocol* hosts = nullptr;

  /// Whether `peer` speaks VIP for `protocol`. Without a table every host is believed to.
  [[nodiscard]] bool speaks(HostAddress peer, ProtocolNumber protocol) const {
    if (hosts == nullptr) return true;
    control::SpeaksVip asked{peer, protocol, false};
    return control::ask(*hosts, asked) == Errc::ok && asked.speaks;
  }
  /// Whether `peer` can be reached over the Ethernet: it speaks VIP, and ARP resolves it.
  [[nodiscard]] bool local(HostAddress peer, ProtocolNumber protocol) const {
    if (!speaks(peer, protocol)) return false;
    control::Resolve resolve{peer, {}};
    return control::ask(ethernet, resolve) == Errc::ok;
  }
  /// The host of the peer: as `participants` or the devices say, else as the table says.
  [[nodiscard]] HostAddress peer_of(Session& lower, const ParticipantSet& participants) const {
    HostAddress peer = peer_host(lower, participants);
    if (peer.known() || hosts == nullptr || !participants.remote.ethernet.known()) return peer;
    control::ResolveReverse reverse{participants.remote.ethernet, {}};
    return control::ask(*hosts, reverse) == Errc::ok ? reverse.host : HostAddress{};
  }
  /// Whether messages through `lower`, an Ethernet session, belong to another host than `peer`, and ARP says that this
  /// host is still there: one machine has both addresses. Only one of them can have the session; the other is reached
  /// over IP.
  [[nodiscard]] bool taken(const Session& lower, HostAddress peer) const {
    if (lower.above == nullptr || !lower.above->peer().known() || lower.above->peer() == peer) return false;
    control::Resolve resolve{lower.above->peer(), {}};
    return control::ask(ethernet, resolve) == Errc::ok && resolve.ethernet == lower.participants().remote.ethernet;
  }
  /// The longest message that goes over the Ethernet. 0: it does not say.
  [[nodiscard]] std::size_t ethernet_maximum() const {
    control::MaximumMessage maximum;
    return control::ask(ethernet, maximum) == Errc::ok ? maximum.size : 0;
  }
  /// The largest message that `high` will ever push. One that does not say may push anything.
  [[nodiscard]] static std::size_t advertised(Protocol& high) {
    control::AdvertisedMaximum advertised;
    return control::ask(high, advertised) == Errc::ok ? advertised.size : std::numeric_limits<std::size_t>::max();
  }
  /// Answers a request to a virtual protocol that concerns the protocols below.
  [[nodiscard]] Errc control(control::Request& request) const;
  /// Enables both for `high` and advertises that this host speaks VIP; or neither. `name`: the virtual protocol's, for
  /// errors.
  [[nodiscard]] Status enable(Protocol& high, const ParticipantSet& participants, const std::string& name) const;
  void disable(Protocol& high, const ParticipantSet& participants) const noexcept;
};

/// The table of VIP hosts that a graph puts below VIP or VIPaddr, after ETH and IP; null: there is none. Errors:
/// invalid_argument.
[[nodiscard]] Result<Protocol*> table_of_hosts(const InstanceParts& parts);

}  // namespace lrpc::netrpc::vip
