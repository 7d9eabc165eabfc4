// System calls that fail for want of something.
#pragma once

#include <cerrno>
#include <new>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// Whether a system call that has failed with `err` lacked descriptors or memory, in this process or in the system. The
/// lack may pass, and says nothing about the file or the peer that the call was for.
[[nodiscard]] constexpr bool is_lack(int err) noexcept {
  return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

/// The error of an epoll_ctl(2) that has failed with `err`. ENOSPC is a limit there, and not about a disk, of which
/// its usual words speak.
[[nodiscard]] inline Error epoll_ctl_error(int err) noexcept try {
  if (err == ENOSPC)
    return {Errc::system_error, "epoll_ctl: this user watches as many descriptors as fs.epoll.max_user_watches allows"};
  return system_error("epoll_ctl", err);
} catch (const std::bad_alloc&) {
  return {Errc::system_error, {}};
}

}  // namespace lrpc::shim
