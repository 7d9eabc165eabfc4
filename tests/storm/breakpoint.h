// What a breakpoint is on this processor.
#pragma once

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <cstdint>
#include <cstring>

namespace lrpc::storm {

#if defined(__x86_64__)
/// int3. When the kernel reports it, the program counter is behind it.
inline constexpr std::uint8_t kBreakpoint[] = {0xcc};
inline constexpr std::uintptr_t kAfterBreakpoint = 1;
using Registers = user_regs_struct;
inline decltype(Registers::rip)& program_counter(Registers& registers) noexcept { return registers.rip; }
#elif defined(__aarch64__)
/// brk #0. When the kernel reports it, the program counter is still on it.
inline constexpr std::uint8_t kBreakpoint[] = {0x00, 0x00, 0x20, 0xd4};
inline constexpr std::uintptr_t kAfterBreakpoint = 0;
using Registers = user_regs_struct;
inline decltype(Registers::pc)& program_counter(Registers& registers) noexcept { return registers.pc; }
#endif
inline constexpr std::size_t kBreakpointSize = sizeof kBreakpoint;

/// The registers of a thread in a ptrace stop. False: the thread is gone.
inline bool get_registers(pid_t thread, Registers& registers) noexcept {
  iovec all{&registers, sizeof registers};
  return ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &all) == 0;
}
inline bool set_registers(pid_t thread, Registers& registers) noexcept {
  iovec all{&registers, sizeof registers};
  return ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &all) == 0;
}

}  // namespace lrpc::storm
