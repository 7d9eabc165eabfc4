#include "lrpc/detail/sandbox/threads.h"

#include <sched.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <string>

namespace lrpc::sandbox {
namespace {

Status look() {
  struct stat tasks {};
  if (::stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink >= 3) {
    const std::size_t threads = tasks.st_nlink - 2;  // `.`, `..`, and one directory per thread
    if (threads == 1) return {};
    return Error{Errc::invalid_argument, "this process has " + std::to_string(threads) + " threads"};
  }
  // Without /proc (in a chroot), ask the kernel: unshare(CLONE_THREAD) does nothing in a process of one thread, and
  // fails with EINVAL in others (unshare(2)).
  if (::unshare(CLONE_THREAD) == 0) return {};
  if (errno == EINVAL) return Error{Errc::invalid_argument, "this process has other threads"};
  return Error{Errc::not_supported,
               "nothing tells whether this process has other threads: /proc is not there, and unshare(2) is refused"};
}

}  // namespace

Status check_only_thread() {
  constexpr int kTries = 50;
  for (int tries = 1;; ++tries) {
    Status alone = look();
    if (alone.code() != Errc::invalid_argument || tries == kTries) return alone;
    const timespec pause{0, 1'000'000};  // a thread that has been joined counts until the kernel has let go of it
    (void)::nanosleep(&pause, nullptr);
  }
}

}  // namespace lrpc::sandbox
