#include "netrpc/sim/devices.h"

namespace lrpc::netrpc {

namespace {
/// The machine that the instance's host is a life of; null if it is not simulated.
SimHost* machine_of(const InstanceParts& parts) {
  auto* const world = dynamic_cast<SimWorld*>(&parts.host.engine());
  return world == nullptr ? nullptr : world->find(parts.host);
}
Error not_simulated(const InstanceParts& parts) {
  return {Errc::invalid_argument, parts.name + ": the host is not a simulated one"};
}
}  // namespace

ProtocolKind sim_ethernet_kind(std::string name) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "a simulated Ethernet: the hosts of a segment, frames of up to 1500 bytes";
  kind.options = {{"types", OptionType::number, "ethertype of protocol number 0 (0xa700)", false, "0", "65535"},
                  {"reverse", OptionType::number, "0: nobody knows the host that has an Ethernet address (1)"},
                  {"interface", OptionType::text, "ignored: a simulated host has one interface"}};
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    SimHost* const machine = machine_of(parts);
    if (machine == nullptr) return not_simulated(parts);
    const auto types = static_cast<std::uint16_t>(parts.options.number("types", 0xa700));
    const bool reverse = parts.options.number("reverse", 1) != 0;
    return std::unique_ptr<Protocol>(std::make_unique<SimEthernet>(*machine, parts.name, types, reverse));
  };
  return kind;
}

ProtocolKind sim_ip_kind(std::string name) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "a simulated IP: every host of the world, messages of up to 65515 bytes";
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    SimHost* const machine = machine_of(parts);
    if (machine == nullptr) return not_simulated(parts);
    return std::unique_ptr<Protocol>(std::make_unique<SimIp>(*machine, parts.name));
  };
  return kind;
}

ProtocolKind sim_udp_kind(std::string name) {
  ProtocolKind kind;
  kind.name = std::move(name);
  kind.summary = "a simulated UDP: every host of the world, messages of up to 65507 bytes";
  kind.options = udp_port_options();
  kind.options.push_back({"address", OptionType::text, "ignored: a simulated host has one address"});
  kind.many_ports = udp_many_ports;
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    SimHost* const machine = machine_of(parts);
    if (machine == nullptr) return not_simulated(parts);
    const Result<UdpPorts> ports = udp_ports(parts.options);
    if (!ports) return ports.error();
    return std::unique_ptr<Protocol>(std::make_unique<SimUdp>(*machine, parts.name, *ports));
  };
  return kind;
}

}  // namespace lrpc::netrpc
