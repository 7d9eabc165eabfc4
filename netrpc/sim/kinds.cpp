#include "netrpc/sim/devices.h"

namespace lrpc::netrpc {

namespace {
/// Errors: invalid_argument (the host is not a simulated one).
template <class Device, class... Options>
Result<std::unique_ptr<Protocol>> make_device(const InstanceParts& parts, const Options&... options) {
  auto* const world = dynamic_cast<SimWorld*>(&parts.host.engine());
  SimHost* const machine = world == nullptr ? nullptr : world->find(parts.host);
  if (machine == nullptr) return Error{Errc::invalid_argument, parts.name + ": the host is not a simulated one"};
  return std::make_unique<Device>(*machine, parts.name, options...);
}
}  // namespace

ProtocolKind sim_ethernet_kind(std::string name) {
  return {
      .name = std::move(name),
      .summary = "a simulated Ethernet: the hosts of a segment, frames of up to 1500 bytes",
      .options = {{"types", OptionType::number, "ethertype of protocol number 0 (0xa700)", false, "0", "65535"},
                  {"reverse", OptionType::number, "0: nobody knows the host that has an Ethernet address (1)"},
                  {"interface", OptionType::text, "ignored: a simulated host has one interface"}},
      .make =
          [](const InstanceParts& parts) {
            const auto types = static_cast<std::uint16_t>(parts.options.number("types", 0xa700));
            return make_device<SimEthernet>(parts, types, parts.options.number("reverse", 1) != 0);
          },
  };
}

ProtocolKind sim_ip_kind(std::string name) {
  return {
      .name = std::move(name),
      .summary = "a simulated IP: every host of the world, messages of up to 65515 bytes",
      .make = make_device<SimIp>,
  };
}

ProtocolKind sim_udp_kind(std::string name) {
  return {
      .name = std::move(name),
      .summary = "a simulated UDP: every host of the world, messages of up to 65507 bytes",
      .many_ports = udp_many_ports,
      .options = udp_port_options({{"address", OptionType::text, "ignored: a simulated host has one address"}}),
      .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
        const Result<UdpPorts> ports = udp_ports(parts.options);
        if (!ports) return ports.error();
        return make_device<SimUdp>(parts, *ports);
      },
  };
}

}  // namespace lrpc::netrpc
