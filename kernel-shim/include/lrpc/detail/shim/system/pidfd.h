// Descriptors of processes. Not by glibc's <sys/pidfd.h>: that of 2.36 cannot be used from C++, because it lacks
// extern "C".
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// pidfd_open(2). On failure it is empty; errno.
[[nodiscard]] inline UniqueFd pidfd_of(pid_t process) noexcept {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0U)));
}

/// pidfd_getfd(2): a copy of another process's descriptor. On failure it is empty; errno.
[[nodiscard]] inline UniqueFd copy_from(const UniqueFd& pidfd, int number) noexcept {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0U)));
}

}  // namespace lrpc::shim
