// Receives a message that may bring a stranger's descriptors.
#pragma once

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
  int err = 0;        ///< Why nothing was received; EAGAIN: there is no message.
  bool cut = false;   ///< It had more bytes than there was room.
  std::optional<Credentials> sender = {};
  /// At most kMaxBinderFds, each an end of a SEQPACKET socketpair, a memfd or a seccomp listener. The caller must put
  /// the sockets among them into a PeerSocket (Made::by_peer) before anything can fail.
  std::vector<UniqueFd> fds = {};
  bool fds_refused = false;  ///< Some were of another kind, or too many. None is kept.
  bool fds_lost = false;     ///< This process had no free descriptors for them. None is kept.
};

/// Receives one message, without waiting for one, on a thread with its own descriptor table, if the kernel can do that
/// (close_range(2), pidfd_getfd(2)): a stranger's descriptors enter this process's table only after they have been
/// checked. Blocks while that thread receives and checks, which does not wait for the stranger; the thread alone then
/// closes what was refused. May throw std::bad_alloc; then nothing has been received.
///
/// ENOBUFS: after `patience` too much of this user's was still being closed, or more descriptors came than
/// RLIMIT_NOFILE has room for, or there is no thread. E2BIG: a peek found more descriptors than are ever accepted. In
/// both cases the message stays queued.
///
/// With RLIMIT_NOFILE below kLeastDescriptors, and always if the thread has no table of its own, it peeks at the
/// message before it receives it. A peer that has a copy of this end could replace the message between the two: the
/// other message is refused, but while the table is nearly full it can hold up that thread and the caller.
Intake take_in(int socket, std::span<std::byte> room, const Stranger& stranger,
               std::chrono::milliseconds patience = std::chrono::milliseconds(0));

/// Room for all that one message can bring (SCM_MAX_FD), and more.
inline constexpr std::size_t kLeastDescriptors = 300;

}  // namespace lrpc::shim
