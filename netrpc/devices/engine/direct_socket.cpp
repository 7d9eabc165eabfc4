#include "netrpc/devices/engine/direct_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace lrpc::netrpc {

bool DirectSocket::start(SocketId id, int fd) noexcept {
  fd_.reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  id_ = id;
  return active();
}

void DirectSocket::look() noexcept {
  iovec part{room_.data(), room_.size()};
  msghdr header{};
  header.msg_name = from_.data();
  header.msg_namelen = kAddressRoom;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control_.data();
  header.msg_controllen = control_.size();
  const ssize_t size = ::recvmsg(fd_.get(), &header, MSG_DONTWAIT);
  if (size >= 0) {
    const std::span<const std::byte> from(from_);
    const std::span<const std::byte> control(control_);
    found_.emplace(Found{.cut = (header.msg_flags & MSG_TRUNC) != 0,
                         .data = room_.first(static_cast<std::size_t>(size)),
                         .from = from.first(std::min<std::size_t>(header.msg_namelen, kAddressRoom)),
                         .control = control.first(std::min<std::size_t>(header.msg_controllen, kControlRoom))});
  } else if (errno != EAGAIN && errno != EINTR) {
    found_.emplace(Found{.error = errno});
  }
}

}  // namespace lrpc::netrpc
