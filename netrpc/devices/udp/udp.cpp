#include "netrpc/devices/udp/udp.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "netrpc/devices/device/internet_device.h"
#include "netrpc/devices/engine/local_address.h"

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kHeaders = 28;  ///< IP's and UDP's.

class Udp final : public InternetDevice {
 public:
  Udp(Host& host, std::string name, UringEngine& engine, const UdpOptions& options, HostAddress bound)
      : InternetDevice(host, std::move(name), engine, options.peers, bound, kHeaders), ports_(options.ports) {}

 protected:
  Result<int> make_socket(ProtocolNumber number) override {
    const std::optional<std::uint16_t> port = ports_.local(number);
    if (!port) return no_port(number);
    UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return system_error("socket(SOCK_DGRAM)", errno);
    const int cut = IP_PMTUDISC_DONT;
    ::setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &cut, sizeof cut);
    if (!bound_.known()) report_local_address(socket.get());
    const sockaddr_in address = socket_address(bound_, *port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      if (errno == EADDRINUSE)
        return Error{Errc::name_taken, fmt::format("{}: port {} is in use{}", name(), *port,
                                                   ports_.only ? "" : ": choose others with `ports`, on all hosts")};
      return cannot_bind(name(), bound_, *port, errno);
    }
    return socket.release();
  }

  Result<DevicePeer> peer_of(ProtocolNumber number, Participant& remote) override {
    if (const Status sound = check_remote(remote); !sound) return sound.error();
    if (remote.port == 0) remote.port = ports_.remote(number).value_or(0);
    if (remote.port == 0) return no_port(number);
    if (!ports_.allows(number, remote.port))
      return Error{Errc::invalid_argument, fmt::format("{}: protocol {} has port {} on all hosts", name(), number,
                                                       ports_.remote(number).value_or(0))};
    return peer_at(remote.host, remote.port);
  }

  bool accept(ProtocolNumber number, Message& /*message*/, std::span<const std::byte> from,
              DevicePeer& peer) noexcept override {
    sockaddr_in sender{};
    if (from.size() < sizeof sender) return false;
    std::memcpy(&sender, from.data(), sizeof sender);
    const HostAddress source{ntohl(sender.sin_addr.s_addr)};
    const std::uint16_t port = ntohs(sender.sin_port);
    if (sender.sin_family != AF_INET || !source.known() || source.value >> 28 >= 0xe) return false;
    // If all hosts send from the port at which they receive, a datagram from another port is another program's, or
    // forged. One from port 0 cannot be answered.
    if (!ports_.allows(number, port)) return false;
    peer = peer_at(source, port);
    peer.set_address(sender);  // with the address of this host that it was sent to
    return true;
  }

 private:
  Error no_port(ProtocolNumber number) const {
    return {Errc::invalid_argument, fmt::format("{}: there is no port for protocol {}", name(), number)};
  }

  const UdpPorts ports_;
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_udp(Host& host, std::string name, const UdpOptions& options) {
  return make_internet_device<Udp>("UDP", host, std::move(name), options);
}

std::vector<OptionDescription> udp_port_options(std::vector<OptionDescription> others) {
  const std::initializer_list<OptionDescription> ports{
      {"ports", OptionType::number, "the port of protocol number 0; default 24000", false, "0", "65535"},
      {"local_ports", OptionType::number,
       "the same for this host's own ports; 0: whichever are free, for a host that only calls; default: as ports",
       false, "0", "65535"},
      {"local_port", OptionType::number, "this host's own port, as it is, where one protocol alone uses this one",
       false, "1", "65535"},
      {"peer_ports", OptionType::text,
       "fixed: what comes from other ports is dropped; any: a peer is a host and a port; default fixed"},
  };
  others.insert(others.begin(), ports);
  return others;
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
  return {.name = "UDP",
          .summary = "messages in UDP datagrams, to any host; needs no privilege",
          .many_ports = udp_many_ports,
          .options = udp_port_options(
              {{"address", OptionType::text, "this host's own, to send from and to be reached at; default: any"},
               {"peers", OptionType::number, "sessions at one time; default 4096", false, "1"}}),
          .make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
            UdpOptions options;
            Result<UdpPorts> ports = udp_ports(parts.options);
            if (!ports) return ports.error();
            options.ports = *ports;
            options.address = parts.options.text("address");
            options.peers = parts.options.number("peers", options.peers);
            return make_udp(parts.host, parts.name, options);
          }};
}

}  // namespace lrpc::netrpc
