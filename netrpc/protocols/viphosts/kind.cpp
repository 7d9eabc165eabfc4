#include "netrpc/protocols/viphosts/viphosts.h"

namespace lrpc::netrpc {

ProtocolKind viphosts_kind() {
  ProtocolKind kind;
  kind.name = "VIPHOSTS";
  kind.summary = "the table of hosts on the Ethernet that speak VIP, kept by advertisement";
  kind.gives = Service::datagram;
  kind.below = {{"the Ethernet", Service::datagram}};
  kind.options = {
      {"lifetime", OptionType::duration, "how long others believe what this host advertises, 10ms to 1h (90s)"},
      {"hosts", OptionType::number, "in the table at once (1024)"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    VipHostsOptions options;
    options.lifetime = parts.options.duration("lifetime", options.lifetime);
    options.hosts = parts.options.number("hosts", options.hosts);
    return make_viphosts(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
