#include "netrpc/devices/ip/ip.h"

namespace lrpc::netrpc {

ProtocolKind ip_kind() {
  ProtocolKind kind;
  kind.name = "IP";
  kind.summary = "messages in IP datagrams, to any host; needs CAP_NET_RAW";
  kind.gives = Service::datagram;
  kind.options = {
      {"address", OptionType::text, "this host's own, to send from and to be reached at; default: any"},
      {"peers", OptionType::number, "sessions at one time; default 4096", false, "1"},
  };
  kind.make = [](const InstanceParts& parts) {
    IpOptions options;
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    return make_ip(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
