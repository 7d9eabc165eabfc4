// System calls that the kernel refuses to one thread, and to those that it starts, from here on.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace testing_lrpc {

inline constexpr auto kNoSuchKernel =
    "no filters of seccomp can be set: no kernel without SO_PASSRIGHTS to be had here";

/// What this thread starts, processes too, has it as well. False: no filter can be had here.
template <std::size_t N>
[[nodiscard]] bool filter_this_thread(std::array<sock_filter, N> code) {
  const sock_fprog program{static_cast<unsigned short>(N), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/// A kernel without SO_PASSRIGHTS (Linux 6.16), whatever this one can.
[[nodiscard]] inline bool forget_pass_rights() {
  constexpr std::uint32_t kPassRights = 83;
  const auto argument = [](unsigned n) { return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + n * 8); };
  return filter_this_thread(std::array<sock_filter, 6>{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_setsockopt, 0, 3), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument(2)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPassRights, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOPROTOOPT), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}});
}

/// No thread can be started.
[[nodiscard]] inline bool refuse_threads() {
  return filter_this_thread(std::array<sock_filter, 5>{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}});
}

}  // namespace testing_lrpc
