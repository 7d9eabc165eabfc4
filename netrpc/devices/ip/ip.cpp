#include "netrpc/devices/ip/ip.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lrpc/netrpc/wire.h"
#include "netrpc/devices/device/device.h"
#include "netrpc/devices/device/interface.h"
#include "netrpc/devices/ip/header.h"

namespace lrpc::netrpc {

namespace {

constexpr std::size_t kLongest = 65535 - kIpHeader;

class Ip final : public Device {
 public:
  Ip(Host& host, std::string name, UringEngine& engine, const IpOptions& options, HostAddress bound)
      : Device(host, std::move(name), engine, options.peers), bound_(bound) {}

 protected:
  Result<int> make_socket(ProtocolNumber number) override {
    if (number == 0 || number >= 255)
      return Error{Errc::invalid_argument, fmt::format("{}: {} is no IP protocol number (1 to 254)", name(), number)};
    const int fd = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, static_cast<int>(number));
    if (fd < 0 && (errno == EPERM || errno == EACCES))
      return Error{
          Errc::not_permitted,
          name() + ": IP protocols of one's own need CAP_NET_RAW; give it to this program, or use UDP in place of IP"};
    if (fd < 0) return system_error("socket(SOCK_RAW)", errno);
    // Datagrams may be cut on their way: whoever wants none cut asks for OptimumMessage.
    const int cut = IP_PMTUDISC_DONT;
    ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &cut, sizeof cut);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(bound_.value);
    if (bound_.known() && ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const int error = errno;
      ::close(fd);
      return system_error("bind", error);
    }
    return fd;
  }

  Result<DevicePeer> peer_of(ProtocolNumber /*number*/, Participant& remote) override {
    if (!remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
    if (path_mtu(remote.host) == 0)
      return Error{Errc::host_unreachable, fmt::format("{}: there is no route to {}", name(), to_string(remote.host))};
    return peer_at(remote.host);
  }

  /// A raw socket receives the IP header, too.
  bool accept(ProtocolNumber /*number*/, Message& message, std::span<const std::byte> /*from*/,
              DevicePeer& peer) noexcept override {
    const auto source = pop_ip_header(message);
    if (!source) return false;
    peer = peer_at(*source);
    return true;
  }

  Participant participant_of(const DevicePeer& peer) noexcept override {
    Participant participant;
    participant.host = {static_cast<std::uint32_t>(peer.number)};
    return participant;
  }

  std::size_t maximum() const noexcept override { return kLongest; }
  std::size_t optimum(HostAddress peer) const noexcept override {
    const std::size_t mtu = peer.known() ? path_mtu(peer) : kUsualMtu;
    return std::min(mtu > kIpHeader ? mtu - kIpHeader : kUsualMtu - kIpHeader, kLongest);
  }
  std::size_t kernel_headers() const noexcept override { return kIpHeader; }
  bool cuts() const noexcept override { return true; }
  Participant local() const noexcept override {
    Participant own;
    own.host = bound_.known() ? bound_ : host().address();
    return own;
  }

 private:
  static DevicePeer peer_at(HostAddress host) noexcept {
    DevicePeer peer;
    peer.number = host.value;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(host.value);
    peer.set_address(address);
    return peer;
  }

  const HostAddress bound_;
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_ip(Host& host, std::string name, const IpOptions& options) {
  auto engine = device_engine(host, "IP");
  if (!engine) return engine.error();
  auto bound = own_address(host, options.address);
  if (!bound) return Error{bound.error().code, name + ": " + bound.error().text};
  return std::unique_ptr<Protocol>(
      std::make_unique<Ip>(host, std::move(name), *engine.value(), options, bound.value()));
}

}  // namespace lrpc::netrpc
