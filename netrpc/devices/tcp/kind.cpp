#include "netrpc/devices/tcp/tcp.h"

namespace lrpc::netrpc {

ProtocolKind tcp_kind() {
  ProtocolKind kind;
  kind.name = "TCP";
  kind.summary = "messages as records in TCP's streams, for one protocol; a peer is a host and a port";
  kind.gives = Service::datagram;
  kind.options = {
      {"port", OptionType::number, "where this host accepts connections; default: it only makes some", false, "1",
       "65535"},
      {"address", OptionType::text, "this host's own; default: any"},
      {"peers", OptionType::number, "sessions at one time; default 256", false, "1", "65536"},
      {"longest", OptionType::number, "bytes of the longest message; default 131072", false, "1", "1048576"},
      {"idle", OptionType::duration, "after which a connection that nothing moves on ends; default 300s", false, "1ms",
       "86400s"},
  };
  kind.many_ports = [](const Options&) { return true; };
  kind.needs_port = true;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    TcpOptions options;
    if (parts.options.has("port")) options.port = static_cast<std::uint16_t>(parts.options.number("port", 0));
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    options.longest = parts.options.number("longest", options.longest);
    options.idle = parts.options.duration("idle", options.idle);
    return make_tcp(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
