// Whether a child process has ended.
#pragma once

#include <sys/wait.h>

namespace testing_lrpc {

/// Does not reap it.
[[nodiscard]] inline bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

}  // namespace testing_lrpc
