#include "small_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "control_message.h"

namespace lrpc::shim {
namespace {

union Control {
  char bytes[CMSG_SPACE(SmallMessage::kMostFds * sizeof(int))];
  cmsghdr align;
};

}  // namespace

bool send_small(int socket, std::span<const std::byte> bytes, int fd) noexcept {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.bytes;
    header.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  }
  while (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

Result<std::optional<SmallMessage>> receive_small(int socket, std::size_t longest, const char* what) {
  SmallMessage received;
  iovec data{received.bytes.data(), std::min(longest, received.bytes.size())};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::optional<SmallMessage>();
    return Error{Errc::peer_gone, std::string("the ") + what + " is broken"};
  }
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    take_descriptors(*one, [&](UniqueFd fd) {
      if (received.fd_count < SmallMessage::kMostFds) received.fds[received.fd_count++] = std::move(fd);
    });
  }
  if (got == 0 && received.fd_count == 0) return Error{Errc::peer_gone, std::string("the ") + what + " has hung up"};
  received.size = static_cast<std::size_t>(got);
  received.fds_lost = (header.msg_flags & MSG_CTRUNC) != 0;
  return std::optional<SmallMessage>(std::move(received));
}

}  // namespace lrpc::shim
