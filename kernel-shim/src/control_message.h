// What a peer attaches to a message.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "lrpc/shim/fd.h"

namespace lrpc::shim {

/// Hands every descriptor of one control message to `take(UniqueFd)`. Also those that nobody sent: whoever made the
/// socket can have the kernel add a pidfd to each message (SO_PASSPIDFD), and still has our end to switch that on.
///
/// A TCP socket among them does not linger when it is closed (SO_LINGER): its sender does not say how long we wait.
template <class Take>
void take_descriptors(const cmsghdr& control, Take&& take) {
  constexpr int kPidfd = 4;  // SCM_PIDFD, Linux 6.5
  if (control.cmsg_level != SOL_SOCKET || (control.cmsg_type != SCM_RIGHTS && control.cmsg_type != kPidfd)) return;
  const std::size_t size = control.cmsg_len - CMSG_LEN(0);
  for (std::size_t at = 0; at + sizeof(int) <= size; at += sizeof(int)) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(&control) + at, sizeof number);
    UniqueFd fd(number);
    if (control.cmsg_type == kPidfd) continue;
    constexpr linger kNot{0, 0};
    (void)::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &kNot, sizeof kNot);
    take(std::move(fd));
  }
}

}  // namespace lrpc::shim
