#include "bare_sockets.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace lrpc::bench {

namespace {
constexpr std::uint16_t kEthertype = 0x88b5;  // for local experiments (IEEE 802)
constexpr int kIpProtocol = 253;              // the same (RFC 3692)
constexpr std::uint16_t kPort = 7007;
constexpr std::byte kPing{1};
constexpr std::byte kStop{2};
}  // namespace

std::string_view name_of(SocketKind kind) noexcept {
  static constexpr std::array kNames{"AF_PACKET", "raw IP", "kernel UDP", "kernel TCP"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<BareSocket> BareSocket::open(SocketKind kind, const char* interface, netrpc::HostAddress local,
                                    netrpc::HostAddress peer, const Pieces& pieces) {
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(local.value);
  here.sin_port = kind == SocketKind::raw_ip ? 0 : htons(kPort);
  sockaddr_in there = here;
  there.sin_addr.s_addr = htonl(peer.value);
  int raw = -1;
  switch (kind) {
    case SocketKind::packet: raw = ::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(kEthertype)); break;
    case SocketKind::raw_ip: raw = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, kIpProtocol); break;
    case SocketKind::udp: raw = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0); break;
    case SocketKind::tcp: raw = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); break;
  }
  BareSocket made(kind, UniqueFd(raw), pieces);
  if (raw < 0) return system_error("socket", errno);
  if (kind == SocketKind::packet) {
    sockaddr_ll link{};
    link.sll_family = AF_PACKET;
    link.sll_protocol = htons(kEthertype);
    link.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
    if (::bind(raw, reinterpret_cast<const sockaddr*>(&link), sizeof link) != 0) return system_error("bind", errno);
    link.sll_halen = 6;
    std::memset(link.sll_addr, 0xff, 6);  // broadcast: the peer is the only other host on the wire
    std::memcpy(made.peer_, &link, sizeof link);
    made.peer_size_ = sizeof link;
  } else {
    const int on = 1;
    ::setsockopt(raw, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (kind == SocketKind::tcp) ::setsockopt(raw, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::bind(raw, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) return system_error("bind", errno);
    std::memcpy(made.peer_, &there, sizeof there);
    made.peer_size_ = sizeof there;
  }
  if (kind == SocketKind::tcp && ::listen(raw, 1) != 0) return system_error("listen", errno);
  const int megabytes = 4 << 20;
  ::setsockopt(raw, SOL_SOCKET, SO_RCVBUF, &megabytes, sizeof megabytes);
  return made;
}

Status BareSocket::accept() {
  if (kind_ != SocketKind::tcp) return {};
  UniqueFd one(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!one) return system_error("accept", errno);
  const int on = 1;
  ::setsockopt(one.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  listener_ = std::move(fd_);
  fd_ = std::move(one);
  return {};
}

Status BareSocket::connect() {
  if (kind_ == SocketKind::tcp) {
    UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!one) return system_error("socket", errno);
    const int on = 1;
    ::setsockopt(one.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(one.get(), reinterpret_cast<const sockaddr*>(peer_), peer_size_) != 0)
      return system_error("connect", errno);
    fd_ = std::move(one);
  }
  const timeval second{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  return {};
}

bool BareSocket::send(std::size_t size) noexcept {
  // Each piece of a message begins with the same byte.
  const std::byte kind = buffer_[0];
  for (std::size_t at = 0; at < size; at += pieces_.written) {
    const std::size_t part = std::min(pieces_.written, size - at);
    buffer_[0] = kind;
    const ssize_t sent = kind_ == SocketKind::tcp ? ::send(fd_.get(), buffer_.data(), part, MSG_NOSIGNAL)
                                                  : ::sendto(fd_.get(), buffer_.data(), part, 0,
                                                             reinterpret_cast<const sockaddr*>(peer_), peer_size_);
    if (sent != static_cast<ssize_t>(part)) return false;
  }
  return true;
}

int BareSocket::receive(std::size_t size) noexcept {
  int first = -1;
  for (received_ = 0; received_ < size && first != std::to_integer<int>(kStop);) {
    const ssize_t got = ::recv(fd_.get(), buffer_.data(), pieces_.read, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    const std::size_t header = kind_ == SocketKind::raw_ip ? 20 : 0;
    first = std::to_integer<int>(buffer_[header]);
    received_ += static_cast<std::size_t>(got) - header;
  }
  return first;
}

void BareSocket::echo() noexcept {
  // Bytes 1 to 4 of a request hold its size, because it may arrive in several pieces.
  for (;;) {
    if (receive(1) != std::to_integer<int>(kPing)) return;
    const std::size_t header = kind_ == SocketKind::raw_ip ? 20 : 0;
    std::uint32_t size = 0;
    std::memcpy(&size, buffer_.data() + header + 1, sizeof size);
    std::size_t have = received_;
    while (have < size) {
      const ssize_t got = ::recv(fd_.get(), buffer_.data(), pieces_.read, 0);
      if (got <= 0) return;
      have += static_cast<std::size_t>(got) - header;
    }
    buffer_[0] = kPing;
    if (!send(1)) return;
  }
}

bool BareSocket::once(std::size_t size) noexcept {
  const auto bytes = static_cast<std::uint32_t>(std::max<std::size_t>(size, 5));
  buffer_[0] = kPing;
  std::memcpy(buffer_.data() + 1, &bytes, sizeof bytes);
  return send(bytes) && receive(1) == std::to_integer<int>(kPing);
}

void BareSocket::stop() noexcept {
  buffer_[0] = kStop;
  (void)send(5);
}

}  // namespace lrpc::bench
