// System calls that fail for want of something.
#pragma once

#include <cerrno>

namespace lrpc::shim {

/// Whether a system call that has failed with `err` lacked descriptors or memory, in this process or in the system. The
/// lack may pass, and says nothing about the file or the peer that the call was for.
[[nodiscard]] constexpr bool is_lack(int err) noexcept {
  return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS;
}

}  // namespace lrpc::shim
