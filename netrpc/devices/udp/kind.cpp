#include "netrpc/devices/udp/udp.h"

namespace lrpc::netrpc {

std::vector<OptionDescription> udp_port_options() {
  return {
      {"ports", OptionType::number, "the port of protocol number 0; default 24000", false, "0", "65535"},
      {"local_ports", OptionType::number,
       "the same for this host's own ports; 0: whichever are free, for a host that only calls; default: as ports",
       false, "0", "65535"},
      {"local_port", OptionType::number, "this host's own port, as it is, where one protocol alone uses this one",
       false, "1", "65535"},
      {"peer_ports", OptionType::text,
       "fixed: what comes from other ports is dropped; any: a peer is a host and a port; default fixed"},
  };
}

bool udp_many_ports(const Options& given) { return given.text("peer_ports") == "any"; }

Result<UdpPorts> udp_ports(const Options& given) {
  UdpPorts ports;
  ports.peers = static_cast<std::uint32_t>(given.number("ports", ports.peers));
  if (given.has("local_ports")) ports.here = static_cast<std::uint32_t>(given.number("local_ports", 0));
  if (given.has("local_port")) {
    if (ports.here) return Error{Errc::invalid_argument, "local_ports and local_port exclude each other"};
    ports.only = static_cast<std::uint16_t>(given.number("local_port", 0));
  }
  const std::string peers = given.text("peer_ports", "fixed");
  if (peers != "fixed" && peers != "any")
    return Error{Errc::invalid_argument, "peer_ports is '" + peers + "', write fixed or any"};
  ports.any_peer = udp_many_ports(given);
  return ports;
}

ProtocolKind udp_kind() {
  ProtocolKind kind;
  kind.name = "UDP";
  kind.summary = "messages in UDP datagrams, to any host; needs no privilege";
  kind.gives = Service::datagram;
  kind.options = udp_port_options();
  kind.options.push_back(
      {"address", OptionType::text, "this host's own, to send from and to be reached at; default: any"});
  kind.options.push_back({"peers", OptionType::number, "sessions at one time; default 4096", false, "1"});
  kind.many_ports = udp_many_ports;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    UdpOptions options;
    Result<UdpPorts> ports = udp_ports(parts.options);
    if (!ports) return ports.error();
    options.ports = *ports;
    options.address = parts.options.text("address");
    options.peers = parts.options.number("peers", options.peers);
    return make_udp(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
