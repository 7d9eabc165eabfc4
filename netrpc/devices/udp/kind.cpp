#include "netrpc/devices/udp/udp.h"

namespace lrpc::netrpc {

ProtocolKind udp_kind() {
  ProtocolKind kind;
  kind.name = "UDP";
  kind.summary = "messages in UDP datagrams, to any host; needs no privilege";
  kind.gives = Service::datagram;
  kind.options = {
      {"ports", OptionType::number, "the port of protocol number 0; default 24000"},
      {"address", OptionType::text, "this host's own, to send from and to be reached at; default: any"},
      {"peers", OptionType::number, "sessions at one time; default 4096"},
  };
  kind.make = [](const InstanceParts& parts) {
    UdpOptions options;
    options.ports = static_cast<std::uint32_t>(parts.options.number("ports", options.ports));
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    return make_udp(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
