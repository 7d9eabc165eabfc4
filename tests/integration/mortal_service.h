// The ways in which a domain can end, and the procedures of such a domain.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "mortal.client.h"
#include "mortal.server.h"

namespace testing_lrpc {

using Ending = Mortal::Ending;

/// The argument with which a program execs itself: it then holds nothing and stays until it is killed.
inline constexpr const char* kStay = "stay";

[[noreturn]] inline void exec_and_stay() {
  char name[] = "/proc/self/exe";
  char* const arguments[] = {name, const_cast<char*>(kStay), nullptr};
  execv(name, arguments);
  _exit(126);
}

/// Leaves a child that keeps what it has inherited until the test that started this process has ended.
inline void leave_a_child_behind() {
  const pid_t test = getppid();
  if (fork() != 0) return;
  close(STDERR_FILENO);  // so that a reader of the test's output does not wait for this child
  prctl(PR_SET_PDEATHSIG, 0);
  while (kill(test, 0) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  _exit(0);
}

[[noreturn]] inline void wait_for_the_end() {
  for (;;) pause();
}

/// Ends the calling process in this way.
[[noreturn]] inline void meet(Ending ending) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  switch (ending) {
    case Ending::Exit: std::exit(3);
    case Ending::ExitElsewhere: std::thread([] { _exit(4); }).detach(); wait_for_the_end();
    case Ending::QuickExit: std::quick_exit(5);
    case Ending::Exception: std::thread([] { throw std::runtime_error("nobody catches this"); }).join(); break;
    case Ending::Abort: std::abort();
    case Ending::Kill: kill(getpid(), SIGKILL); break;
    case Ending::Fault: {
      void* const nobodys = mmap(nullptr, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      *static_cast<volatile char*>(nobodys) = 1;
      break;
    }
    case Ending::ThreadExit: pthread_exit(nullptr);
    case Ending::ExecLives: exec_and_stay();
    case Ending::ExecElsewhereLives: std::thread([] { exec_and_stay(); }).detach(); wait_for_the_end();
    case Ending::ForkThenExecLives: leave_a_child_behind(); exec_and_stay();
    case Ending::ForkThenKill:
      leave_a_child_behind();
      kill(getpid(), SIGKILL);
      break;
    case Ending::StopThenKill: kill(getpid(), SIGSTOP); break;  // the parent kills it
  }
  wait_for_the_end();
}

class MortalService {
 public:
  struct Thing {
    explicit Thing(std::atomic<int>& things) : live(things) { ++live; }
    ~Thing() { --live; }
    std::atomic<int>& live;
  };

  void Null(lrpc::CallContext&) {}
  std::int32_t Add(lrpc::CallContext&, std::int32_t a, std::int32_t b) { return a + b; }
  void Meet(lrpc::CallContext&, Ending ending) { meet(ending); }
  void Hold(lrpc::CallContext& context) {
    ++held;
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    while (!let_all_go && !context.abandoned() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --held;
  }
  std::int32_t Held(lrpc::CallContext&) { return held; }
  std::uint64_t Nap(lrpc::CallContext&, std::uint32_t milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    return ++naps;
  }
  std::uint64_t Count(lrpc::CallContext&) { return ++counted; }
  Mortal::Thing Own(lrpc::CallContext& context) { return context.grant<Mortal::Thing>(std::make_shared<Thing>(live)); }
  std::int32_t Pid(lrpc::CallContext&) { return getpid(); }

  std::atomic<int> held{0};  ///< Calls to Hold that wait now.
  std::atomic<int> live{0};  ///< Things whose handles are open.
  std::atomic<std::uint64_t> naps{0};
  std::atomic<std::uint64_t> counted{0};
  std::atomic<bool> let_all_go{false};
};

}  // namespace testing_lrpc
