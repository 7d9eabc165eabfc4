// Closing sockets whose contents come from a stranger, and descriptors that a stranger has sent.
//
// A stranger can make close(2) take as long as it likes: a file of a FUSE file system is flushed to its daemon; a TCP
// socket with SO_LINGER waits for its other end; and the last close of an AF_UNIX socket closes the descriptors that
// lie unread in it, however deep. So a descriptor that may hold such a thing is closed on a thread whose delay hurts
// nobody, or is not received at all. docs/OWNERSHIP.md has the whole rule.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

/// Who is at the other end: what one user can hold up is bounded.
struct Stranger {
  uid_t user = static_cast<uid_t>(-1);
  /// Held until the stranger's descriptors are closed: an account's share, for example. Released on any thread.
  std::shared_ptr<const void> account = {};
};

/// Owns an AF_UNIX socket whose other end belongs to a stranger. Move-only; not thread-safe.
class PeerSocket {
 public:
  /// Who made the socket. Its maker may have kept a copy of this end.
  enum class Made : std::uint8_t {
    here,      ///< This process, or one that it trusts: no stranger reads from this end.
    refusing,  ///< The same, and it has called refuse_descriptors() before anybody could send one.
    by_peer,   ///< The stranger.
  };

  PeerSocket() noexcept = default;
  PeerSocket(UniqueFd fd, Made made, Stranger stranger) noexcept;
  PeerSocket(PeerSocket&&) noexcept = default;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  /// From now on the other end cannot send to this one. poll(2) then always shows this end as readable, and as hung up
  /// (POLLHUP) once the other end is.
  void take_nothing() noexcept;
  /// The other end sees the hang-up at once, even if others hold this end. It stays open here. Not in a forked child.
  void hang_up() noexcept;
  /// Hangs up and closes, without waiting for what is left in the socket: if it holds descriptors, may hold some, or
  /// holds many messages, another thread closes it later. A refusing socket is closed at once, without a thread. A
  /// forked child only closes its copy.
  void reset() noexcept;
  /// Gives the socket to the caller, who must close it as reset() would.
  [[nodiscard]] UniqueFd release() noexcept;

 private:
  UniqueFd fd_;
  Made made_ = Made::here;
  ProcessNumber owner_ = 0;
  Stranger stranger_;
};

/// Allocates what close_aside() needs, if that is not done. Throws std::bad_alloc. Thread-safe.
void prepare_to_close_aside();
/// Closes `fd` and then releases the account, on another thread, later. Does not wait, and does not hang up for others
/// that hold the socket, too. Beyond the bounds for one user and for all, descriptors are closed by the end of a
/// thread, at which the kernel does not linger (Linux 5.9). If there can be no thread, `fd` and account wait for one
/// (closing_again.h: who tries again). Even without memory as many can wait as the process could have descriptors when
/// this was prepared, up to 4,096. Any more stay open for ever, which is better than to wait here. Thread-safe.
void close_aside(UniqueFd fd, Stranger stranger) noexcept;

/// Owns a descriptor that is always closed by close_aside(): memory of any size, for example, or a socket whose maker
/// also has this end. Move-only; not thread-safe.
class ClosedAside {
 public:
  ClosedAside() noexcept = default;
  ClosedAside(UniqueFd fd, Stranger stranger) noexcept : fd_(std::move(fd)), stranger_(std::move(stranger)) {}
  ClosedAside(ClosedAside&&) noexcept = default;
  ClosedAside& operator=(ClosedAside&& other) noexcept;
  ~ClosedAside() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  void reset() noexcept {
    if (fd_) close_aside(std::move(fd_), std::move(stranger_));
  }
  /// Gives it to the caller, who closes it by close_aside(), or knows that nobody waits for the close.
  [[nodiscard]] UniqueFd release() noexcept { return std::move(fd_); }

 private:
  UniqueFd fd_;
  Stranger stranger_;
};

/// Makes the kernel refuse descriptors that are sent to this socket, or to those that it accepts (SO_PASSRIGHTS, Linux
/// 6.16). False: this kernel cannot.
bool refuse_descriptors(int socket) noexcept;

}  // namespace lrpc::shim
