// A filter under which membarrier(2) fails, as in some containers, and on kernels that were built without it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace testing_lrpc {

/// Makes the system call fail for all threads of this process, present and future, and for its children.
/// Async-signal-safe.
inline bool refuse_call(std::uint32_t number, int error = EPERM) noexcept {
  std::array<sock_filter, 4> code{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA)),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  sock_fprog program{code.size(), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
inline bool refuse_membarrier(int error = EPERM) noexcept { return refuse_call(SYS_membarrier, error); }

/// Runs this program again from its start, under the filter, with only those tests (--gtest_filter=..., including
/// disabled ones). Returns its exit status; 77: no filter can be set here; minus the signal that ended it.
inline int run_without_membarrier(const char* tests, int error = EPERM) {
  const pid_t child = fork();
  if (child == 0) {
    if (!refuse_membarrier(error)) _exit(77);
    execl("/proc/self/exe", "without-membarrier", tests, "--gtest_also_run_disabled_tests", nullptr);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace testing_lrpc
