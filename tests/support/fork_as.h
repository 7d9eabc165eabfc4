// A process that gets the number of one that has ended.
#pragma once

#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace testing_lrpc {

inline constexpr const char* kNoNumber = "this process cannot give a child the number of another";

/// A new process with that number, in which `act` makes bare system calls, and which the caller must reap. Negative: it
/// cannot have the number.
template <class Act>
pid_t fork_as(pid_t number, const Act& act) {
  clone_args wanted{};
  wanted.exit_signal = SIGCHLD;
  wanted.set_tid = reinterpret_cast<std::uintptr_t>(&number);
  wanted.set_tid_size = 1;
  const long made = ::syscall(SYS_clone3, &wanted, sizeof wanted);
  if (made != 0) return static_cast<pid_t>(made);
  act();
  ::syscall(SYS_exit_group, 0);
  return 0;
}

/// For fork_as(): until it is killed, or the thread that made the process ends.
inline void wait_for_ever() {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

}  // namespace testing_lrpc
