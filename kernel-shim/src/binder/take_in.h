// Receiving a message that may bring descriptors of a stranger's.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// What a message brought.
struct Intake {
  ssize_t size = -1;  ///< Bytes in the room given; -1: nothing was received.
  int err = 0;        ///< Why: EAGAIN, there is none.
  bool cut = false;   ///< It had more bytes than there was room.
  std::optional<ucred> sender = {};
  /// At most kMaxBinderFds, each an end of a SEQPACKET socketpair, a memfd or a seccomp listener. The sockets among
  /// them belong into a PeerSocket (Made::by_peer) before anything can go wrong.
  std::vector<UniqueFd> fds = {};
  bool fds_refused = false;  ///< Some were of another kind, or too many. None is kept.
  bool fds_lost = false;     ///< This process had no free descriptors for them. None is kept.
};

/// Receives one message, without waiting for one, on a thread with a table of descriptors of its own, where the kernel
/// can do that (close_range(2), pidfd_getfd(2)): what a stranger attached never is in this process's table before it
/// has been looked at. Blocks for that thread's work up to there, none of which waits for the stranger; to close what
/// is not wanted is its own affair. May throw std::bad_alloc; then nothing has been received.
///
/// ENOBUFS: too much of this user's is being closed, and still was after `patience`, or more came than RLIMIT_NOFILE
/// has room for, or there is no thread. E2BIG: more came than anybody could want, and was seen before it was received.
/// The message is not touched.
///
/// With RLIMIT_NOFILE below kLeastDescriptors, and always where the thread has no table of its own, the message is
/// looked at before it is received. A peer that has a copy of this end could put another in its place between the two:
/// that is refused, but while the table is nearly full it holds this thread up.
Intake take_in(int socket, std::span<std::byte> room, const Stranger& stranger,
               std::chrono::milliseconds patience = std::chrono::milliseconds(0));

/// Room for all that one message can bring (SCM_MAX_FD), and more.
inline constexpr std::size_t kLeastDescriptors = 300;

}  // namespace lrpc::shim
