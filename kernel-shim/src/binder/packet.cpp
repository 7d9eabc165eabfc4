#include "lrpc/detail/shim/binder/packet.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control_message.h"

namespace lrpc::shim {

ssize_t send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> fds, int flags) noexcept {
  if (fds.size() > kMostPacketFds) {
    errno = EINVAL;
    return -1;
  }
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT: sendmsg(2) only reads
  bool as_acting = true;
  for (;;) {
    alignas(cmsghdr) char control[CMSG_SPACE(kMostPacketFds * sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
    msghdr header = header_of(data);
    attach(header, control, SCM_RIGHTS, std::as_bytes(fds));
    // Unless it is told otherwise, the kernel names the real user and group.
    const ucred acting{::getpid(), ::geteuid(), ::getegid()};
    const bool told = as_acting && (acting.uid != ::getuid() || acting.gid != ::getgid());
    if (told) attach(header, control, SCM_CREDENTIALS, std::as_bytes(std::span(&acting, 1)));
    const ssize_t sent = ::sendmsg(socket, &header, flags | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    // The user namespace does not map one of the two, or another thread has changed them since they were read.
    if (told && (errno == EINVAL || errno == EPERM)) {
      as_acting = false;
    } else if (errno != EINTR) {
      return sent;
    }
  }
}

ssize_t receive_packet(int socket, std::span<std::byte> room, std::span<int> fds, int flags) noexcept {
  std::ranges::fill(fds, -1);
  iovec data{room.data(), room.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostPacketFds * sizeof(int))];  // NOLINT: the kernel writes it
  // CMSG_LEN, not CMSG_SPACE: that rounds up, and nobody would own a descriptor beyond those asked for.
  const std::size_t room_of_fds = fds.empty() ? 0 : CMSG_LEN(std::min(fds.size(), kMostPacketFds) * sizeof(int));
  msghdr header = header_of(data, std::span(control).first(room_of_fds));
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    std::memcpy(fds.data(), CMSG_DATA(one), std::min(fds.size_bytes(), one->cmsg_len - CMSG_LEN(0)));
  }
  return got;
}

}  // namespace lrpc::shim
