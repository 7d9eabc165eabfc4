// What the tests of dying domains have in common.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

#include "ended.h"
#include "eventually.h"
#include "gates.h"
#include "mortal_service.h"
#include "world.h"

namespace testing_lrpc {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

inline constexpr std::array kEveryEnding{Ending::Exit,
                                         Ending::ExitElsewhere,
                                         Ending::QuickExit,
                                         Ending::Exception,
                                         Ending::Abort,
                                         Ending::Kill,
                                         Ending::Fault,
                                         Ending::ThreadExit,
                                         Ending::ExecLives,
                                         Ending::ExecElsewhereLives,
                                         Ending::ForkThenExecLives,
                                         Ending::ForkThenKill,
                                         Ending::StopThenKill};

inline std::string name_of(Ending ending) {
  static constexpr const char* kNames[] = {"exit",
                                           "exit_in_another_thread",
                                           "quick_exit",
                                           "uncaught_exception",
                                           "abort",
                                           "SIGKILL",
                                           "SIGSEGV",
                                           "the_end_of_its_thread",
                                           "exec",
                                           "exec_in_another_thread",
                                           "exec_beside_a_fork_child",
                                           "SIGKILL_beside_a_fork_child",
                                           "SIGKILL_while_stopped"};
  return kNames[static_cast<std::size_t>(ending) - 1];
}
inline std::string name_of_ending(const testing::TestParamInfo<Ending>& tested) { return name_of(tested.param); }

/// Waits until a child of this process is stopped.
inline void wait_until_stopped(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  EXPECT_TRUE(WIFSTOPPED(status));
}

}  // namespace testing_lrpc
