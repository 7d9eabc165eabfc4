// The address of this host that a datagram of UDP was sent to, and that the answer leaves from (RFC 1122 §4.1.3.5),
// where the socket is bound to no address. It travels in the peer's address: in the part of sockaddr_in that the kernel
// does not use, and sets to zero in what it returns.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>

namespace lrpc::netrpc {

/// Room for what IP_PKTINFO brings. The engine's sockets have no option that brings other control messages, and none
/// brings descriptors.
inline constexpr std::size_t kControlRoom = CMSG_SPACE(sizeof(in_pktinfo));

/// From now on the peer's address, as a reader gets it, says where each datagram was sent to. If this fails, the kernel
/// goes on choosing what answers leave from.
inline void report_local_address(int socket) noexcept {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes);
}

/// Puts what `control`, from recvmsg(2), says into `peer`. `control` is aligned as cmsghdr.
inline void keep_local_address(std::span<const std::byte> control, std::span<std::byte> peer) noexcept {
  in_pktinfo info{};
  if (control.size() < CMSG_LEN(sizeof info) || peer.size() < sizeof(sockaddr_in)) return;
  const auto* const message = reinterpret_cast<const cmsghdr*>(control.data());
  if (message->cmsg_level != IPPROTO_IP || message->cmsg_type != IP_PKTINFO) return;
  std::memcpy(&info, CMSG_DATA(message), sizeof info);
  std::memcpy(peer.data() + offsetof(sockaddr_in, sin_zero), &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
}

/// Writes into `control`, for sendmsg(2), which address a datagram to `peer` leaves from. Returns the size of what it
/// has written; 0: the kernel chooses. `control` is aligned as cmsghdr.
[[nodiscard]] inline std::size_t describe_local_address(std::span<const std::byte> peer,
                                                        std::span<std::byte, kControlRoom> control) noexcept {
  sockaddr_in address{};
  in_pktinfo info{};
  if (peer.size() < sizeof address) return 0;
  std::memcpy(&address, peer.data(), sizeof address);
  std::memcpy(&info.ipi_spec_dst, address.sin_zero, sizeof info.ipi_spec_dst);
  if (address.sin_family != AF_INET || info.ipi_spec_dst.s_addr == 0) return 0;
  auto* const message = reinterpret_cast<cmsghdr*>(control.data());
  message->cmsg_len = CMSG_LEN(sizeof info);
  message->cmsg_level = IPPROTO_IP;
  message->cmsg_type = IP_PKTINFO;
  std::memcpy(CMSG_DATA(message), &info, sizeof info);
  return kControlRoom;
}

}  // namespace lrpc::netrpc
