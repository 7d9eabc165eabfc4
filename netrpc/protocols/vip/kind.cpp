#include "netrpc/protocols/vip/choice.h"
#include "netrpc/protocols/vip/vip.h"

namespace lrpc::netrpc {

ProtocolKind vip_kind() {
  ProtocolKind kind;
  kind.name = "VIP";
  kind.summary = "virtual IP: the Ethernet where the peer is local and the message fits, else IP; no header";
  kind.gives = Service::datagram;
  kind.below = {
      {"the Ethernet", Service::datagram}, {"IP", Service::datagram}, {"the table of VIP hosts", Service::datagram}};
  kind.last_below_optional = true;
  kind.options = {
      {"sessions", OptionType::number, "sessions at once (4096)"},
      {"idle", OptionType::duration, "after which an unused session is dropped (60s)"},
      {"avoid", OptionType::duration, "how long IP is used after the Ethernet has failed (10s)"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    auto hosts = vip::table_of_hosts(parts);
    if (!hosts) return hosts.error();
    VipOptions options;
    options.sessions = parts.options.number("sessions", options.sessions);
    options.idle = parts.options.duration("idle", options.idle);
    options.avoid = parts.options.duration("avoid", options.avoid);
    return make_vip(parts.host, parts.name, *parts.below[0], *parts.below[1], *hosts, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
