// How to tell a forked child from its parent, and descriptors that a child must not keep.
#pragma once

#include <cstdint>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// Distinguishes a process from those whose memory it has copied. The pid cannot: the first process of each pid
/// namespace has the number 1, and may be forked from another such process.
using ProcessNumber = std::uint32_t;
/// This process's number, above 0. No system call: the number is in a page that is empty in every child
/// (MADV_WIPEONFORK), except in one that shares all memory, as after vfork(2). Thread-safe.
[[nodiscard]] ProcessNumber this_process() noexcept;

/// Registers this file's fork handlers, if that has not been done. Call it before you register handlers
/// (pthread_atfork(3)) that close such descriptors: in a child, handlers run in the order of their registration.
void know_of_forks();

/// From now on a child of fork(2) does not hold `fd`. In the child its number is a socket that is not connected: it
/// polls as hung up, and every use fails. So the other end sees the end of this process when it ends, even if a child
/// lives on, and even by exec(2), which no pidfd shows. (A child of vfork(2) or posix_spawn(3) closes close-on-exec
/// descriptors at its exec; a child of a bare clone(2) keeps everything.) `fd` must stay open until
/// keep_in_fork_children(). Thread-safe.
void drop_in_fork_children(int fd);
void keep_in_fork_children(int fd) noexcept;

/// A descriptor that forked children do not hold while this object owns it.
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
