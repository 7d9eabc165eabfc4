// What a tracer must know of an aarch64 program's registers.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cerrno>

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

namespace lrpc::sealed {

/// Call it in a seccomp stop: the system call is not made, and fails with EPERM. False: the program has ended, or must
/// be killed.
inline bool refuse_system_call(pid_t pid) noexcept {
  user_regs_struct registers{};
  iovec all{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &all) != 0) return false;
  registers.regs[0] = static_cast<unsigned long long>(-EPERM);
  if (ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &all) != 0) return false;
  int none = -1;
  iovec number{&none, sizeof none};
  return ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &number) == 0;
}

}  // namespace lrpc::sealed
