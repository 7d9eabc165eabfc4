#include "netrpc/devices/udp/udp.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "netrpc/devices/device/device.h"
#include "netrpc/devices/device/interface.h"

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kHeaders = 28;  ///< IP's and UDP's.
constexpr std::size_t kLongestPayload = 65535 - kHeaders;

class Udp final : public Device {
 public:
  Udp(Host& host, std::string name, UringEngine& engine, const UdpOptions& options, HostAddress bound)
      : Device(host, std::move(name), engine, options.peers), ports_(options.ports), bound_(bound) {}

 protected:
  Result<int> make_socket(ProtocolNumber number) override {
    const std::optional<std::uint16_t> port = ports_.local(number);
    if (!port) return no_port(number);
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return system_error("socket(SOCK_DGRAM)", errno);
    const int cut = IP_PMTUDISC_DONT;
    ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &cut, sizeof cut);
    const sockaddr_in address = address_of(bound_, *port);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const int error = errno;
      ::close(fd);
      if (error == EADDRINUSE)
        return Error{Errc::name_taken, fmt::format("{}: port {} is in use{}", name(), *port,
                                                   ports_.only ? "" : ": choose others with `ports`, on all hosts")};
      return system_error("bind", error);
    }
    return fd;
  }

  Result<DevicePeer> peer_of(ProtocolNumber number, Participant& remote) override {
    if (!remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
    if (path_mtu(remote.host) == 0)
      return Error{Errc::host_unreachable, fmt::format("{}: there is no route to {}", name(), to_string(remote.host))};
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
    // Where all hosts send from the port that they receive at, another one is some program of that host, or somebody
    // who pretends to be it. From port 0 nobody can be answered.
    if (!ports_.allows(number, port)) return false;
    peer = peer_at(source, port);
    return true;
  }

  Participant participant_of(const DevicePeer& peer) noexcept override {
    Participant participant;
    participant.host = {static_cast<std::uint32_t>(peer.number >> 16)};
    participant.port = static_cast<std::uint16_t>(peer.number);
    return participant;
  }

  std::size_t maximum() const noexcept override { return kLongestPayload; }
  std::size_t optimum(HostAddress peer) const noexcept override {
    const std::size_t mtu = peer.known() ? path_mtu(peer) : kUsualMtu;
    return std::min(mtu > kHeaders ? mtu - kHeaders : kUsualMtu - kHeaders, kLongestPayload);
  }
  std::size_t kernel_headers() const noexcept override { return kHeaders; }
  bool cuts() const noexcept override { return true; }
  Participant local() const noexcept override {
    Participant own;
    own.host = bound_.known() ? bound_ : host().address();
    return own;
  }

 private:
  static sockaddr_in address_of(HostAddress host, std::uint16_t port) noexcept {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(host.value);
    return address;
  }
  static DevicePeer peer_at(HostAddress host, std::uint16_t port) noexcept {
    DevicePeer peer;
    peer.number = std::uint64_t{host.value} << 16 | port;
    peer.set_address(address_of(host, port));
    return peer;
  }

  Error no_port(ProtocolNumber number) const {
    return {Errc::invalid_argument, fmt::format("{}: there is no port for protocol {}", name(), number)};
  }

  const UdpPorts ports_;
  const HostAddress bound_;
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_udp(Host& host, std::string name, const UdpOptions& options) {
  auto engine = device_engine(host, "UDP");
  if (!engine) return engine.error();
  auto bound = own_address(host, options.address);
  if (!bound) return Error{bound.error().code, name + ": " + bound.error().text};
  return std::unique_ptr<Protocol>(
      std::make_unique<Udp>(host, std::move(name), *engine.value(), options, bound.value()));
}

}  // namespace lrpc::netrpc
