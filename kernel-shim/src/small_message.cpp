#include "small_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "aside.h"
#include "take_in.h"

namespace lrpc::shim {
namespace {

union OneDescriptor {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

}  // namespace

bool send_small(int socket, std::span<const std::byte> bytes, int fd) noexcept {
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  OneDescriptor control{};
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

Result<std::optional<SmallMessage>> receive_small(int socket, std::size_t longest, const char* what,
                                                  PeerSocket::Made made, const Stranger& stranger) {
  SmallMessage received;
  const auto room = std::span(received.bytes).first(std::min(longest, received.bytes.size()));
  const auto nothing = [&](int err) -> Result<std::optional<SmallMessage>> {
    if (err == EAGAIN || err == EINTR) return std::optional<SmallMessage>();
    return Error{Errc::peer_gone, std::string("the ") + what + " is broken"};
  };
  bool attached = made == PeerSocket::Made::by_peer;
  if (!attached) {
    // Without room for a descriptor nothing is received, and nothing closed: the message still has it.
    iovec data{room.data(), room.size()};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_PEEK);
    if (got < 0) return nothing(errno);
    attached = (header.msg_flags & MSG_CTRUNC) != 0;
    received.size = static_cast<std::size_t>(got);
  }
  if (!attached) {
    (void)recv(socket, room.data(), room.size(), MSG_DONTWAIT);  // the same, for nobody else reads
  } else {
    Intake intake = take_in(socket, room, stranger);
    if (intake.size < 0) return nothing(intake.err);
    received.size = static_cast<std::size_t>(intake.size);
    received.fds_lost = intake.fds_lost;
    received.fds_refused = intake.fds_refused || intake.fds.size() > 1;
    for (UniqueFd& fd : intake.fds) {
      if (intake.fds.size() == 1) {
        received.fd = std::move(fd);
      } else {
        close_aside(std::move(fd), stranger);
      }
    }
  }
  if (received.size == 0 && !attached) return Error{Errc::peer_gone, std::string("the ") + what + " has hung up"};
  return std::optional<SmallMessage>(std::move(received));
}

}  // namespace lrpc::shim
