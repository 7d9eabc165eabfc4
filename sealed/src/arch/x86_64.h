// What a tracer must know of an x86-64 program's registers.
#pragma once

#include <sys/ptrace.h>
#include <sys/user.h>

#include <cerrno>

namespace lrpc::sealed {

/// Call it in a seccomp stop: the system call is not made, and fails with EPERM. False: the program has ended, or must
/// be killed.
inline bool refuse_system_call(pid_t pid) noexcept {
  user_regs_struct registers{};
  if (ptrace(PTRACE_GETREGS, pid, nullptr, &registers) != 0) return false;
  registers.orig_rax = ~0ULL;
  registers.rax = static_cast<unsigned long long>(-EPERM);
  return ptrace(PTRACE_SETREGS, pid, nullptr, &registers) == 0;
}

}  // namespace lrpc::sealed
