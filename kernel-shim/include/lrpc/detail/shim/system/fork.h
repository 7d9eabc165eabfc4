// What tells a fork child from its parent, and descriptors that it may not hold on to.
#pragma once

#include <cstdint>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// Tells a process from those whose memory it has a copy of. Not their pid: the first process of each process namespace
/// has the number 1, and one may come of another.
using ProcessNumber = std::uint32_t;
/// This one's, over 0. The kernel is not asked: the page in which it is kept is empty in a child, however that was made
/// (MADV_WIPEONFORK), unless the child shares all memory, as that of vfork(2) does. Thread-safe.
[[nodiscard]] ProcessNumber this_process() noexcept;

/// Makes fork(2) known to this file, if that has not been done. Who registers handlers with pthread_atfork(3) that
/// close such descriptors does so after it, for in a child handlers run in the order of their registration.
void know_of_forks();

/// From now on a child of fork(2) does not hold `fd`: there the number stands for a socket that is not connected, which
/// polls as hung up and fails every use. The other end must see the end of this process at the end of this process,
/// also if that is an exec(2), which no pidfd shows, and a child lives on. (A child of vfork(2) or posix_spawn(3)
/// closes what is close-on-exec by itself; one of a bare clone(2) keeps everything.) `fd` must stay open until
/// keep_in_fork_children(). Thread-safe.
void drop_in_fork_children(int fd);
void keep_in_fork_children(int fd) noexcept;

/// A descriptor that fork children do not hold, from its beginning to its end.
class FdNotForChildren {
 public:
  explicit FdNotForChildren(UniqueFd fd) : fd_(std::move(fd)) {
    if (fd_) drop_in_fork_children(fd_.get());
  }
  FdNotForChildren(FdNotForChildren&&) noexcept = default;
  FdNotForChildren& operator=(FdNotForChildren&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FdNotForChildren() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  void reset() noexcept {
    if (fd_) keep_in_fork_children(fd_.get());
    fd_.reset();
  }

 private:
  UniqueFd fd_;
};

}  // namespace lrpc::shim
