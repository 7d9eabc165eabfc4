#include "netrpc/protocols/vip/choice.h"
#include "netrpc/protocols/vipaddr/vipaddr.h"

namespace lrpc::netrpc {

ProtocolKind vipaddr_kind() {
  ProtocolKind kind;
  kind.name = "VIPADDR";
  kind.summary = "chooses the Ethernet or IP at open and is not there afterwards";
  kind.gives = Service::datagram;
  kind.below = {
      {"the Ethernet", Service::datagram}, {"IP", Service::datagram}, {"the table of VIP hosts", Service::datagram}};
  kind.last_below_optional = true;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    auto hosts = vip::table_of_hosts(parts);
    if (!hosts) return hosts.error();
    return make_vipaddr(parts.host, parts.name, *parts.below[0], *parts.below[1], *hosts);
  };
  return kind;
}

}  // namespace lrpc::netrpc
