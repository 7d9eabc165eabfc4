// Waits for data on a socket.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "eventually.h"

namespace testing_lrpc {

/// recv(2), for kPatience at most. A socket's own timeout makes recv fail with EINTR when the process has been stopped
/// and goes on (signal(7)); this waits again.
inline ssize_t receive_patiently(int socket, std::span<char> room) {
  const timeval patience{kPatienceMs / 1000, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  for (;;) {
    const ssize_t size = ::recv(socket, room.data(), room.size(), 0);
    if (size >= 0 || errno != EINTR) return size;
  }
}

}  // namespace testing_lrpc
