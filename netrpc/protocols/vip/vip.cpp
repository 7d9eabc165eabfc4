// VIP's protocol object and sessions.
#include "netrpc/protocols/vip/vip.h"

#include <utility>

#include "netrpc/protocols/vip/choice.h"
#include "netrpc/protocols/vip/virtual_protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/way.h"

namespace lrpc::netrpc {

namespace vip {
namespace {

class VipProtocol final : public VirtualProtocol {
 public:
  VipProtocol(Host& host, std::string name, Ways ways, const VipOptions& options)
      : VirtualProtocol(host, std::move(name), options.sessions, options.idle), ways_(ways), avoid_(options.avoid) {}

  [[nodiscard]] const Ways& ways() const noexcept { return ways_; }
  [[nodiscard]] Duration avoid() const noexcept { return avoid_; }

 private:
  VirtualSession* make_session(Protocol& high, const ParticipantSet& participants, const PeerKey& key) override;
  HostAddress peer_of(Session& lower, const ParticipantSet& participants) override {
    return ways_.peer_of(lower, participants);
  }
  Status enable_below(ProtocolNumber number) override { return ways_.enable(*this, {number, {}, {}}, name()); }
  void disable_below(ProtocolNumber number) noexcept override { ways_.disable(*this, {number, {}, {}}); }
  Errc control_below(control::Request& request) noexcept override { return ways_.control(request); }

  const Ways ways_;
  const Duration avoid_;
};

class VipSession final : public VirtualSession {
 public:
  using VirtualSession::VirtualSession;

  /// The one test: does the message fit the Ethernet, if that is open?
  Errc push(Message message) noexcept override {
    used = true;
    look_at_ethernet();
    if (message.size() < ethernet_bound_) [[likely]] {
      const Errc outcome = ethernet_->push(std::move(message));
      if (outcome == Errc::host_unreachable) [[unlikely]]
        ethernet_failed();
      return outcome;
    }
    return push_over_ip(std::move(message));
  }
  Errc control(control::Request& request) noexcept override {
    look_at_ethernet();
    const std::size_t over_ethernet = ethernet_bound_ - 1;  // if any message goes over it
    if (ethernet_bound_ != 0 && !ip_ && control::answered(request, control::MaximumMessage{over_ethernet}))
      return Errc::ok;
    if (ethernet_bound_ != 0 && control::answered(request, control::OptimumMessage{over_ethernet})) return Errc::ok;
    if (std::holds_alternative<control::MaximumMessage>(request) ||
        std::holds_alternative<control::OptimumMessage>(request))
      return ip_ ? ip_->control(request) : Errc::host_unreachable;
    if (std::holds_alternative<control::LocalHost>(request) || std::holds_alternative<control::RoundTrip>(request)) {
      Session* const lower = ethernet_bound_ != 0 || !ip_ ? ethernet_.get() : ip_.get();
      return lower != nullptr ? lower->control(request) : Errc::host_unreachable;
    }
    return Session::control(request);
  }
  /// Chooses by where the peer is and how large messages will be.
  [[nodiscard]] Errc choose() override {
    if (!peer().known()) return Errc::ok;  // bound to the Ethernet session that it came by
    const Ways& ways = vip().ways();
    if (ethernet_bound_ == 0 && vip().host().now() >= avoid_until_ && ways.local(peer(), key().protocol)) {
      auto opened = ways.ethernet.open(vip(), Way::by_host(participants()));
      if (opened && !ways.taken(**opened, peer())) use_ethernet(std::move(*opened));
    }
    if (ip_ || Ways::advertised(high()) < ethernet_bound_) return Errc::ok;
    const Errc opened = ip_.open(ways.ip, participants());
    return opened == Errc::ok || ethernet_bound_ != 0 ? Errc::ok : opened;
  }
  void attach(Session& lower) override {
    if (&lower.protocol() != &vip().ways().ethernet) return ip_.take(SessionRef(&lower));
    proven_ = true;
    use_ethernet(SessionRef(&lower));
  }

 private:
  void swept() noexcept override { follow_ethernet(); }
  [[nodiscard]] VipProtocol& vip() const noexcept { return static_cast<VipProtocol&>(protocol()); }
  /// This message is lost, as messages may be; the next one goes over IP.
  void ethernet_failed() noexcept {
    ethernet_bound_ = 0;
    proven_ = false;
    avoid_until_ = vip().host().now() + vip().avoid();
  }
  [[nodiscard]] Errc push_over_ip(Message message) noexcept {
    if (!ip_) {
      if (!peer().known()) return ethernet_bound_ != 0 ? Errc::message_too_long : Errc::host_unreachable;
      if (const Errc outcome = ip_.open(vip().ways().ip, participants()); outcome != Errc::ok) return outcome;
    }
    return ip_->push(std::move(message));
  }
  void use_ethernet(SessionRef session) {
    ethernet_.take(std::move(session));
    ask_bound();
  }
  void ask_bound() {
    control::MaximumMessage maximum;
    if (control::ask(*ethernet_, maximum) != Errc::ok) maximum.size = vip().ways().ethernet_maximum();
    ethernet_bound_ = maximum.size + 1;
  }
  /// If paths have changed, the Ethernet may carry less, or more, or lead to the peer by now.
  void look_at_ethernet() noexcept {
    if (ethernet_.changed()) [[unlikely]]
      follow_ethernet();
  }
  void follow_ethernet() noexcept {
    if (ethernet_bound_ != 0 && !proven_ && !vip().ways().speaks(peer(), key().protocol)) ethernet_bound_ = 0;
    if (ethernet_bound_ != 0) return ask_bound();
    attempt([&] { static_cast<void>(choose()); });  // without memory it stays as it is
  }

  Way ethernet_{*this};
  Way ip_{*this};
  std::size_t ethernet_bound_ = 0;  ///< Messages shorter than this go over the Ethernet; 0: none.
  Time avoid_until_{};              ///< The Ethernet has failed: it is not used before this time.
  bool proven_ = false;             ///< The peer has sent over the Ethernet: it speaks VIP, whatever a table says.
};

VirtualSession* VipProtocol::make_session(Protocol& high, const ParticipantSet& participants, const PeerKey& key) {
  return new VipSession(*this, high, participants, key);
}

}  // namespace
}  // namespace vip

Result<std::unique_ptr<Protocol>> make_vip(Host& host, std::string name, Protocol& ethernet, Protocol& ip,
                                           Protocol* hosts, const VipOptions& options) {
  if (options.sessions == 0 || options.idle <= Duration::zero())
    return Error{Errc::invalid_argument, "sessions and idle must be more than nothing"};
  return std::make_unique<vip::VipProtocol>(host, std::move(name), vip::Ways{ethernet, ip, hosts}, options);
}

ProtocolKind vip_kind() {
  return {.name = "VIP",
          .summary = "virtual IP: the Ethernet where the peer is local and the message fits, else IP; no header",
          .below = {{"the Ethernet", Service::datagram},
                    {"IP", Service::datagram},
                    {"the table of VIP hosts", Service::datagram}},
          .last_below_optional = true,
          .options = {{"sessions", OptionType::number, "sessions at once (4096)"},
                      {"idle", OptionType::duration, "after which an unused session is dropped (60s)", false, "1ms"},
                      {"avoid", OptionType::duration, "how long IP is used after the Ethernet has failed (10s)"}},
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            auto hosts = vip::table_of_hosts(parts);
            if (!hosts) return hosts.error();
            VipOptions options;
            options.sessions = parts.options.number("sessions", options.sessions);
            options.idle = parts.options.duration("idle", options.idle);
            options.avoid = parts.options.duration("avoid", options.avoid);
            return make_vip(parts.host, parts.name, *parts.below[0], *parts.below[1], *hosts, options);
          }};
}

}  // namespace lrpc::netrpc
