#include "netrpc/protocols/vipaddr/vipaddr.h"

#include <utility>

#include "netrpc/protocols/vip/choice.h"

namespace lrpc::netrpc {

namespace {

class VipAddrProtocol final : public Protocol {
 public:
  VipAddrProtocol(Host& host, std::string name, vip::Ways ways) : Protocol(host, std::move(name)), ways_(ways) {}

  /// One session, that of ETH where the host is local and everything that `high` will push fits, else that of IP. It is
  /// between `high` and the lower protocol: nothing of VIPaddr is in the way of a message. A peer may answer the other
  /// way: who must hear that enables itself.
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

}  // namespace lrpc::netrpc
