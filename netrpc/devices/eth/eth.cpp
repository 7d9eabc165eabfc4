// One packet socket for each protocol number in use, of type SOCK_DGRAM: the kernel writes and removes the Ethernet
// header, and never copies a frame of another protocol to us. A frame shorter than Ethernet's minimum may arrive
// padded.
#include "netrpc/devices/eth/eth.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "netrpc/devices/arp/arp_sender.h"
#include "netrpc/devices/arp/neighbours.h"
#include "netrpc/devices/device/device.h"
#include "netrpc/devices/link/link_watch.h"

namespace lrpc::netrpc {

namespace {

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23
#endif

constexpr std::uint32_t kFirstEthertype = 0x600;  ///< Lower values are lengths.

class Eth final : public Device, private LinkUser {
 public:
  Eth(Host& host, std::string name, UringEngine& engine, const EthOptions& options, std::unique_ptr<Asker> asker,
      std::unique_ptr<LinkWatch> watch, std::unique_ptr<Neighbours> neighbours, std::unique_ptr<ArpSender> arp)
      : Device(host, std::move(name), engine, options.peers),
        types_(options.types),
        asker_(std::move(asker)),
        watch_(std::move(watch)),
        neighbours_(std::move(neighbours)),
        arp_(std::move(arp)) {
    watch_->tell(*this);
    neighbours_->resolved = [this](HostAddress known) { found(known); };
  }
  ~Eth() override { watch_->tell_nobody(); }

  Errc control(control::Request& request) noexcept override {
    if (auto* const wanted = std::get_if<control::Resolve>(&request))
      return neighbours_->resolve(wanted->host, wanted->ethernet);
    if (auto* const wanted = std::get_if<control::ResolveReverse>(&request))
      return neighbours_->resolve_reverse(wanted->ethernet, wanted->host);
    return Device::control(request);
  }

 protected:
  Result<int> make_socket(ProtocolNumber number) override {
    const std::uint64_t type = std::uint64_t{types_} + number;
    if (type < kFirstEthertype || type > 0xffff)
      return Error{Errc::invalid_argument,
                   fmt::format("{}: there is no ethertype {:#x} for protocol {}", name(), type, number)};
    // Protocol 0 first, so that nothing arrives before the socket is bound to its interface.
    UniqueFd socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket && (errno == EPERM || errno == EACCES))
      return Error{
          Errc::not_permitted,
          name() + ": Ethernet frames need CAP_NET_RAW; give it to this program, or use UDP in place of ETH and IP"};
    if (!socket) return system_error("socket(AF_PACKET)", errno);
    const int yes = 1;
    ::setsockopt(socket.get(), SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
    const sockaddr_ll address = link_address(link().index, static_cast<std::uint16_t>(type));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return system_error("bind(AF_PACKET)", errno);
    return socket.release();
  }

  Result<DevicePeer> peer_of(ProtocolNumber number, Participant& remote) override {
    if (!remote.ethernet.known()) {
      if (!remote.host.known()) return Error{Errc::invalid_argument, name() + ": the remote host is missing"};
      if (neighbours_->resolve(remote.host, remote.ethernet) != Errc::ok) {
        if (neighbours_->may_answer(remote.host)) return DevicePeer::to_be_found(remote.host);
        return Error{Errc::host_unreachable,
                     fmt::format("{}: {} is not on the link {}", name(), to_string(remote.host), link().name)};
      }
    } else if (!remote.host.known() && remote.ethernet != kEthernetBroadcast) {
      (void)neighbours_->resolve_reverse(remote.ethernet, remote.host);
    }
    return peer_at(remote.ethernet, static_cast<std::uint16_t>(types_ + number));
  }

  bool accept(ProtocolNumber /*number*/, Message& /*message*/, std::span<const std::byte> from,
              DevicePeer& peer) noexcept override {
    sockaddr_ll sender{};
    if (from.size() < offsetof(sockaddr_ll, sll_addr) + 6) return false;
    std::memcpy(&sender, from.data(), std::min(from.size(), sizeof sender));
    // Refuses frames to others (on a promiscuous interface) and our own.
    if (sender.sll_pkttype != PACKET_HOST && sender.sll_pkttype != PACKET_BROADCAST &&
        sender.sll_pkttype != PACKET_MULTICAST)
      return false;
    EthernetAddress source;
    if (sender.sll_halen != source.bytes.size() || sender.sll_ifindex != link().index) return false;
    std::memcpy(source.bytes.data(), sender.sll_addr, source.bytes.size());
    if ((source.bytes[0] & 1) != 0 || !source.known()) return false;  // no host's
    peer = peer_at(source, ntohs(sender.sll_protocol));
    return true;
  }

  Participant participant_of(const DevicePeer& peer) noexcept override {
    Participant participant;
    participant.ethernet = ethernet_of(peer);
    (void)neighbours_->resolve_reverse(participant.ethernet, participant.host);
    return participant;
  }

  std::size_t maximum() const noexcept override { return link().mtu; }
  std::size_t optimum(HostAddress /*peer*/) const noexcept override { return link().mtu; }
  Participant local() const noexcept override { return {.host = host().address(), .ethernet = link().ethernet}; }
  bool pads_empty() const noexcept override { return true; }
  /// The news of a change may have been lost, or may not have arrived yet.
  void refused(int error) noexcept override {
    if (error == EMSGSIZE || error == ENXIO || error == ENODEV || error == ENETDOWN) watch_->look();
  }
  void unheard(const Participant& remote, const DevicePeer& peer) noexcept override {
    if (arp_ && remote.host.known()) arp_->doubt(remote.host, ethernet_of(peer));
  }
  std::uint64_t addressing() const noexcept override { return neighbours_->changes(); }
  /// If the peer's host is known, ARP says where it is; else its address stays. If ARP does not know the host, messages
  /// go to its last address, and are lost if it has moved. While the kernel's routes lead to the host another way,
  /// nothing is sent.
  bool readdress(ProtocolNumber number, Participant& remote, DevicePeer& peer) noexcept override {
    EthernetAddress ethernet = peer.found() ? ethernet_of(peer) : EthernetAddress{};
    if (remote.host.known()) (void)neighbours_->resolve(remote.host, ethernet);
    if (neighbours_->routed_away(remote.host)) {
      remote.ethernet = {};
      peer = DevicePeer::to_be_found(remote.host);
      return false;
    }
    if (!ethernet.known()) return false;
    remote.ethernet = ethernet;
    peer = peer_at(ethernet, static_cast<std::uint16_t>(types_ + number));
    return !remote.host.known() || neighbours_->routed_here(remote.host);
  }
  bool may_be_found(HostAddress peer) noexcept override { return neighbours_->may_answer(peer); }

 private:
  void link_changed(const LinkChange& change) noexcept override {
    if (change.mtu || change.gone || change.back) host().peers().path_changed();
    if (change.gone || change.back) neighbours_->use_interface(link().index);
    if (change.back || change.ethernet) {
      // The sockets were bound to the former link. If the news of its removal was lost, the new one may have the same
      // index, and only another Ethernet address. Binding a socket needs no privilege; only making it did.
      each_socket([this](ProtocolNumber number, int fd) {
        const sockaddr_ll address = link_address(link().index, static_cast<std::uint16_t>(types_ + number));
        (void)::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      });
    }
    if (arp_) arp_->link_changed(change);
  }
  [[nodiscard]] const Interface& link() const noexcept { return watch_->link(); }
  [[nodiscard]] static EthernetAddress ethernet_of(const DevicePeer& peer) noexcept {
    EthernetAddress ethernet;
    for (std::size_t i = 0; i < 6; ++i) ethernet.bytes[i] = static_cast<std::uint8_t>(peer.number >> (8 * (5 - i)));
    return ethernet;
  }
  [[nodiscard]] DevicePeer peer_at(const EthernetAddress& ethernet, std::uint16_t type) const noexcept {
    DevicePeer peer;
    peer.number = ethernet.number();
    peer.set_address(link_address(link().index, type, ethernet));
    return peer;
  }

  const std::uint32_t types_;
  const std::unique_ptr<Asker> asker_;  ///< The others use it until they are destroyed.
  const std::unique_ptr<LinkWatch> watch_;
  const std::unique_ptr<Neighbours> neighbours_;
  const std::unique_ptr<ArpSender> arp_;  ///< Null: this process may not send ARP packets.
};

}  // namespace

Result<std::unique_ptr<Protocol>> make_eth(Host& host, std::string name, const EthOptions& options) {
  auto engine = device_engine(host, "ETH");
  if (!engine) return engine.error();
  auto interface = find_interface(options.interface);
  if (!interface) return interface.error();
  if (!host.address().known()) host.set_address(interface.value().host);
  auto asker = Asker::make(host, *engine.value());
  if (!asker) return asker.error();
  auto watch = LinkWatch::make(host, *engine.value(), **asker, std::move(interface).value());
  if (!watch) return watch.error();
  auto neighbours = Neighbours::make(host, *engine.value(), **asker, watch.value()->link().index);
  if (!neighbours) return neighbours.error();
  auto arp = ArpSender::make(host, *engine.value(), *watch.value());
  if (!arp) return arp.error();
  return std::make_unique<Eth>(host, std::move(name), **engine, options, *std::move(asker), *std::move(watch),
                               *std::move(neighbours), *std::move(arp));
}

ProtocolKind eth_kind() {
  ProtocolKind kind;
  kind.name = "ETH";
  kind.summary = "messages in Ethernet frames, to hosts on the same link; needs CAP_NET_RAW";
  kind.options = {
      {"interface", OptionType::text, "the network interface; default: that of the default route, or the only one"},
      {"types", OptionType::number, "the ethertype of protocol number 0; default 42752 (0xa700)", false, "0", "65535"},
      {"peers", OptionType::number, "sessions at one time; default 4096", false, "1"},
  };
  kind.make = [](const InstanceParts& parts) {
    EthOptions options;
    options.interface = parts.options.text("interface");
    options.types = static_cast<std::uint32_t>(parts.options.number("types", options.types));
    options.peers = parts.options.number("peers", options.peers);
    return make_eth(parts.host, parts.name, options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
