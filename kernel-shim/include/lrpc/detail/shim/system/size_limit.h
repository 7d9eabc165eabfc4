// The limit of file sizes (RLIMIT_FSIZE), which the kernel applies to memfds, too.
#pragma once

#include <signal.h>

#include <cerrno>
#include <ctime>

namespace lrpc::shim {

/// Runs `grow`, which returns an errno or 0, and returns its result. Beyond the limit of file sizes the kernel sends
/// SIGXFSZ, which would end a program that uses the library: the thread does not get it, only EFBIG.
template <class Grow>
[[nodiscard]] int without_size_signal(Grow&& grow) noexcept {
  sigset_t beyond;
  sigemptyset(&beyond);
  sigaddset(&beyond, SIGXFSZ);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &beyond, &before);
  const int err = grow();
  if (err == EFBIG && sigismember(&before, SIGXFSZ) == 0) {
    const timespec now{};
    (void)sigtimedwait(&beyond, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return err;
}

}  // namespace lrpc::shim
