// What a stranger may have put into a socket, or sent in place of one, and who waits when that is closed.
//
// close(2) can take as long as a stranger likes: a file of a FUSE file system is flushed to its daemon; a TCP socket
// with SO_LINGER waits for its other end; and the last close of an AF_UNIX socket closes what lies unread in it,
// however deep. So whatever may hold such a thing is closed on a thread whose delay hurts nobody, or was never
// received. docs/OWNERSHIP.md has the whole rule.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

/// Who is at the other end, for the bounds on what one user can hold up.
struct Stranger {
  uid_t user = static_cast<uid_t>(-1);
  /// Kept until its descriptors are closed: an account's share, for example. Let go of on any thread.
  std::shared_ptr<const void> account = {};
};

/// Owns an AF_UNIX socket whose other end a stranger has. Move-only; not thread-safe.
class PeerSocket {
 public:
  /// Who made the socket, and may have kept a copy of this very end.
  enum class Made : std::uint8_t {
    here,      ///< This process, or one that it trusts: nobody else reads from this end.
    refusing,  ///< The same, and it has refused descriptors (refuse_descriptors()) before anybody could send any.
    by_peer,   ///< The stranger.
  };

  PeerSocket() noexcept = default;
  PeerSocket(UniqueFd fd, Made made, Stranger stranger) noexcept;
  PeerSocket(PeerSocket&&) noexcept = default;
  PeerSocket& operator=(PeerSocket&& other) noexcept;
  ~PeerSocket() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }
  /// From now on the other end can say nothing here. poll(2) then shows this end as readable for good, and as hung up
  /// (POLLHUP) once the other is.
  void take_nothing() noexcept;
  /// The other end sees the end at once, whoever else holds this one. It stays open here. Not in a fork child.
  void hang_up() noexcept;
  /// Hangs up and closes, without waiting for anything that is left in the socket: what has descriptors in it, or may
  /// have, or has many messages, is closed on another thread, at some time. A refusing socket is closed at once, and
  /// needs no thread. A fork child only lets go of its copy.
  void reset() noexcept;
  /// Hands the socket over to the caller, who closes it as this would have.
  [[nodiscard]] UniqueFd release() noexcept;

 private:
  UniqueFd fd_;
  Made made_ = Made::here;
  ProcessNumber owner_ = 0;
  Stranger stranger_;
};

/// Makes what close_aside() needs, if it is not there. Throws std::bad_alloc. Thread-safe.
void prepare_to_close_aside();
/// Closes `fd` and then lets go of the account, on another thread, at some time. Does not wait, and is no end of the
/// socket for others who hold it, too. What is too much of one user's, or of all, is closed by the end of a thread,
/// which the kernel lets linger for nobody (Linux 5.9). Where no thread can be had, both wait for one, and
/// closing_again.h says who tries again. As many can wait without memory as the process might have descriptors when
/// this was prepared, up to 4,096. Any more stay for good: better than to wait here. Thread-safe.
void close_aside(UniqueFd fd, Stranger stranger) noexcept;

/// Owns a descriptor that close_aside() closes, whatever becomes of it: memory of any size, for example, or a socket
/// whose maker has this end, too. Move-only; not thread-safe.
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
  /// Hands it over to the caller, who closes it as this would have, or knows that nobody waits.
  [[nodiscard]] UniqueFd release() noexcept { return std::move(fd_); }

 private:
  UniqueFd fd_;
  Stranger stranger_;
};

/// Has the kernel refuse descriptors to whoever sends one to this socket, or to those that it accepts (SO_PASSRIGHTS,
/// Linux 6.16). False: this kernel cannot.
bool refuse_descriptors(int socket) noexcept;

}  // namespace lrpc::shim
