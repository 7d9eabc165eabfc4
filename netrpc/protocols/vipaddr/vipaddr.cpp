#include "netrpc/protocols/vipaddr/vipaddr.h"

#include <utility>

#include "netrpc/protocols/vip/choice.h"

namespace lrpc::netrpc {

namespace {

class VipAddrProtocol final : public Protocol {
 public:
  VipAddrProtocol(Host& host, std::string name, vip::Ways ways) : Protocol(host, std::move(name)), ways_(ways) {}

  /// Opens ETH's session if the host is local and everything that `high` will push fits, else IP's. The session is
  /// between `high` and the lower protocol: VIPaddr handles no message. The peer may answer over the other protocol: to
  /// hear that, `high` must enable itself.
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (!participants.remote.host.known())
      return Error{Errc::invalid_argument, name() + " needs the host address of the peer"};
    if (vip::Ways::advertised(high) <= ways_.ethernet_maximum() &&
        ways_.local(participants.remote.host, participants.protocol)) {
      auto session = ways_.ethernet.open(high, participants);
      if (session && !ways_.taken(**session, participants.remote.host)) return session;
    }
    return ways_.ip.open(high, participants);
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    return ways_.enable(high, participants, name());
  }
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override {
    ways_.disable(high, participants);
  }
  Errc control(control::Request& request) noexcept override {
    if (std::holds_alternative<control::Statistics>(request)) return Protocol::control(request);
    if (std::holds_alternative<control::DropIdle>(request)) return Errc::ok;  // it keeps nothing
    return ways_.control(request);
  }

 private:
  const vip::Ways ways_;
};

}  // namespace

std::unique_ptr<Protocol> make_vipaddr(Host& host, std::string name, Protocol& ethernet, Protocol& ip,
                                       Protocol* hosts) {
  return std::make_unique<VipAddrProtocol>(host, std::move(name), vip::Ways{ethernet, ip, hosts});
}

ProtocolKind vipaddr_kind() {
  return {.name = "VIPADDR",
          .summary = "chooses the Ethernet or IP at open and is not there afterwards",
          .below = {{"the Ethernet", Service::datagram},
                    {"IP", Service::datagram},
                    {"the table of VIP hosts", Service::datagram}},
          .last_below_optional = true,
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            auto hosts = vip::table_of_hosts(parts);
            if (!hosts) return hosts.error();
            return make_vipaddr(parts.host, parts.name, *parts.below[0], *parts.below[1], *hosts);
          }};
}

}  // namespace lrpc::netrpc
