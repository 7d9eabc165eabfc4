// Control data of messages (descriptors, credentials): to peek at it, take it out and attach it.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {

/// A msghdr with one buffer and, if given, control data. `part` and the memory of `control` must outlive it.
inline msghdr header_of(iovec& part, std::span<char> control = {}) noexcept {
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  return header;
}

/// The next message of a socket, which stays queued. Its descriptors are not received, because the control data has no
/// room for them.
struct Peeked {
  ssize_t size = -1;     ///< As recvmsg(2) returns it; -1: errno says why.
  bool laden = false;    ///< It has descriptors, or other control data that nobody asked for.
  bool carries = false;  ///< It has credentials. With SO_PASSCRED every message has, and the end of file has not.
};
/// `credentials`: they are switched on, and the control data has room for them alone. errno is recvmsg's.
inline Peeked peek(int socket, std::span<std::byte> room, int flags, bool credentials) noexcept {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  iovec data{room.data(), room.size()};
  msghdr header = header_of(data, credentials ? std::span<char>(control) : std::span<char>());
  const ssize_t size = ::recvmsg(socket, &header, MSG_PEEK | flags);
  return {size, size >= 0 && (header.msg_flags & MSG_CTRUNC) != 0, size >= 0 && header.msg_controllen != 0};
}

inline constexpr int kPidfdMessage = 4;  // SCM_PIDFD, Linux 6.5

/// Calls `take(number, sent)` for every descriptor in the control data. `sent` is false for a descriptor that no
/// peer sent: if SO_PASSPIDFD is set, the kernel adds a pidfd to each message, and the maker of the socket, who may
/// still hold our end, can set it. If the kernel could not make the pidfd, it adds a negative number, which is skipped.
template <class Take>
void for_each_descriptor(msghdr& header, Take&& take) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || (one->cmsg_type != SCM_RIGHTS && one->cmsg_type != kPidfdMessage)) continue;
    const std::size_t size = one->cmsg_len - CMSG_LEN(0);
    for (std::size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(one) + at, sizeof number);
      if (number >= 0) take(number, one->cmsg_type == SCM_RIGHTS);
    }
  }
}

/// Why the kernel could not make a pidfd that was asked for: its errno. 0: it has made one, or was not asked.
inline int pidfd_error_in(msghdr& header) noexcept {
  int number = 0;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != kPidfdMessage || one->cmsg_len < CMSG_LEN(sizeof number))
      continue;
    std::memcpy(&number, CMSG_DATA(one), sizeof number);
  }
  return number < 0 ? -number : 0;
}

/// The sender's credentials, as the kernel knows them, if the control data has them.
inline std::optional<Credentials> credentials_in(msghdr& header) noexcept {
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    if (one->cmsg_len < CMSG_LEN(sizeof sender)) continue;
    std::memcpy(&sender, CMSG_DATA(one), sizeof sender);
    return Credentials{sender.pid, sender.uid, sender.gid};
  }
  return std::nullopt;
}

/// Attaches `what` behind what is attached already, unless it is empty. `buffer` must live as long as the header, be
/// aligned as cmsghdr, be zero, and have CMSG_SPACE(its size) bytes for each that is attached.
inline void attach(msghdr& header, std::span<char> buffer, int type, std::span<const std::byte> what) noexcept {
  if (what.empty()) return;
  auto* const one = reinterpret_cast<cmsghdr*>(buffer.data() + header.msg_controllen);
  header.msg_control = buffer.data();
  header.msg_controllen += CMSG_SPACE(what.size());
  one->cmsg_level = SOL_SOCKET;
  one->cmsg_type = type;
  one->cmsg_len = CMSG_LEN(what.size());
  std::memcpy(CMSG_DATA(one), what.data(), what.size());
}

}  // namespace lrpc::shim
