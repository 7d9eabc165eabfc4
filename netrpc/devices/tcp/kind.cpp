#include "netrpc/devices/tcp/tcp.h"

namespace lrpc::netrpc {

ProtocolKind tcp_kind() {
  ProtocolKind kind;
  kind.name = "TCP";
  kind.summary = "messages as records in TCP's streams, for one protocol; a peer is a host and a port";
  kind.gives = Service::datagram;
  kind.options = {
      {"port", OptionType::number, "where this host accepts connections; default: it only makes some"},
      {"address", OptionType::text, "this host's own; default: any"},
      {"peers", OptionType::number, "sessions at one time; default 256"},
      {"longest", OptionType::number, "bytes of the longest message; default 131072, at most 1048576"},
      {"idle", OptionType::duration, "after which a connection that nothing moves on ends; default 5 minutes"},
  };
  kind.many_ports = [](const Options&) { return true; };
  kind.needs_port = true;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    TcpOptions options;
    if (parts.options.has("port")) {
      const std::uint64_t port = parts.options.number("port", 0);
      if (port == 0 || port > 0xffff) return Error{Errc::invalid_argument, "port is no port: write 1 to 65535"};
      options.port = static_cast<std::uint16_t>(port);
    }
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    options.longest = parts.options.number("longest", options.longest);
    options.idle = parts.options.duration("idle", options.idle);
    return make_tcp(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
