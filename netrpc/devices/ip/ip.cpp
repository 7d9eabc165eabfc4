#include "netrpc/devices/ip/ip.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "netrpc/devices/device/internet_device.h"
#include "netrpc/devices/ip/header.h"

namespace lrpc::netrpc {

namespace {

class Ip final : public InternetDevice {
 public:
  Ip(Host& host, std::string name, UringEngine& engine, const IpOptions& options, HostAddress bound)
      : InternetDevice(host, std::move(name), engine, options.peers, bound, kIpHeader) {}

 protected:
  Result<int> make_socket(ProtocolNumber number) override {
    if (number == 0 || number >= 255)
      return Error{Errc::invalid_argument, fmt::format("{}: {} is no IP protocol number (1 to 254)", name(), number)};
    UniqueFd socket(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, static_cast<int>(number)));
    if (!socket && (errno == EPERM || errno == EACCES))
      return Error{
          Errc::not_permitted,
          name() + ": IP protocols of one's own need CAP_NET_RAW; give it to this program, or use UDP in place of IP"};
    if (!socket) return system_error("socket(SOCK_RAW)", errno);
    // Routers may fragment datagrams: a protocol that wants none fragmented asks for OptimumMessage.
    const int cut = IP_PMTUDISC_DONT;
    ::setsockopt(socket.get(), IPPROTO_IP, IP_MTU_DISCOVER, &cut, sizeof cut);
    const sockaddr_in address = socket_address(bound_);
    if (bound_.known() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return cannot_bind(name(), bound_, 0, errno);
    return socket.release();
  }

  Result<DevicePeer> peer_of(ProtocolNumber /*number*/, Participant& remote) override {
    if (const Status sound = check_remote(remote); !sound) return sound.error();
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
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_ip(Host& host, std::string name, const IpOptions& options) {
  return make_internet_device<Ip>("IP", host, std::move(name), options);
}

ProtocolKind ip_kind() {
  return {.name = "IP",
          .summary = "messages in IP datagrams, to any host; needs CAP_NET_RAW",
          .options = {{"address", OptionType::text, "this host's own, to send from and to be reached at; default: any"},
                      {"peers", OptionType::number, "sessions at one time; default 4096", false, "1"}},
          .make = [](const InstanceParts& parts) {
            IpOptions options;
            options.address = parts.options.text("address");
            options.peers = parts.options.number("peers", options.peers);
            return make_ip(parts.host, parts.name, options);
          }};
}

}  // namespace lrpc::netrpc
