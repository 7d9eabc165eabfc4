#include "netrpc/protocols/vip/choice.h"

#include <algorithm>

namespace lrpc::netrpc::vip {

Errc Ways::control(control::Request& request) const {
  // Without a session it is the size that goes uncut over either protocol.
  if (auto* const optimum = std::get_if<control::OptimumMessage>(&request)) {
    control::OptimumMessage over_ip;
    const std::size_t over_ethernet = ethernet_maximum();
    const Errc outcome = control::ask(ip, over_ip);
    if (outcome != Errc::ok && over_ethernet == 0) return outcome;
    optimum->size = over_ip.size == 0    ? over_ethernet
                    : over_ethernet == 0 ? over_ip.size
                                         : std::min(over_ip.size, over_ethernet);
    return Errc::ok;
  }
  if (std::holds_alternative<control::MaximumMessage>(request)) return ip.control(request);
  if (std::holds_alternative<control::AdvertisedMaximum>(request)) return Errc::not_supported;
  const Errc outcome = ethernet.control(request);
  // A host that ARP does not know may have told the table its Ethernet address itself.
  if (outcome == Errc::host_unreachable && hosts != nullptr && std::holds_alternative<control::ResolveReverse>(request))
    return hosts->control(request);
  return outcome == Errc::not_supported ? ip.control(request) : outcome;
}

namespace {
void advertise(Protocol* hosts, ProtocolNumber protocol, bool speaks) {
  if (hosts == nullptr) return;
  control::AdvertiseVip said{protocol, speaks};
  static_cast<void>(control::ask(*hosts, said));
}
}  // namespace

Status Ways::enable(Protocol& high, const ParticipantSet& participants, const std::string& name) const {
  if (participants.protocol == 0 || participants.protocol > 255)
    return Error{Errc::invalid_argument, name + ": protocol numbers of IP are from 1 to 255"};
  if (auto enabled = ethernet.open_enable(high, participants); !enabled) return enabled;
  if (auto enabled = ip.open_enable(high, participants); !enabled) {
    ethernet.open_disable(high, participants);
    return enabled;
  }
  advertise(hosts, participants.protocol, true);
  return {};
}

void Ways::disable(Protocol& high, const ParticipantSet& participants) const noexcept {
  ethernet.open_disable(high, participants);
  ip.open_disable(high, participants);
  advertise(hosts, participants.protocol, false);
}

Result<Protocol*> table_of_hosts(const InstanceParts& parts) {
  if (parts.below.size() <= 2) return nullptr;
  control::SpeaksVip asked;
  if (parts.below.size() > 3 || control::ask(*parts.below[2], asked) != Errc::ok)
    return Error{Errc::invalid_argument, parts.name + " stands on ETH, IP and, if wanted, one VIPHOSTS"};
  return parts.below[2];
}

}  // namespace lrpc::netrpc::vip
