// The engine's timers in a time namespace, where CLOCK_BOOTTIME differs from the kernel's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>

#include "eventually.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/host.h"
#include "netrpc/devices/engine/uring_engine.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80  // Linux 5.6
#endif

namespace lrpc::netrpc::test {
namespace {

constexpr int kNotHere = 77;

/// What `action` returns in a child; -1 if a signal has ended the child.
template <class Action>
int in_a_child(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action());
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The same in a time namespace whose clock is ahead of the kernel's by more than a day.
template <class Action>
int in_a_time_namespace(const Action& action) {
  return in_a_child([&] {
    constexpr std::string_view kAhead = "boottime 100000 0\n";
    if (::unshare(CLONE_NEWTIME) != 0) return kNotHere;  // it is for children
    UniqueFd offsets(::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC));
    if (::write(offsets.get(), kAhead.data(), kAhead.size()) < 0) return kNotHere;
    offsets.reset();
    return in_a_child(action);
  });
}

/// This thread waits for an event.
int run_an_event(EngineKind kind) {
  (void)::alarm(testing_lrpc::kPatienceMs / 1000);  // a wait whose timer does not go off would never end
  auto engine = UringEngine::make(kind);
  if (!engine) return kNotHere;
  const MonotonicClock clock;
  Host host({.name = "host", .address = {}}, clock, **engine);
  bool ran = false;
  Event event([&] { ran = true; });
  const Shepherd inside(host.monitor());
  host.events().schedule(event, std::chrono::milliseconds(2));
  return (*engine)->wait(
             host, [&] { return ran; }, Time::max())
             ? 0
             : 1;
}

class TimeNamespace : public testing::TestWithParam<EngineKind> {};

TEST_P(TimeNamespace, keeps_no_event_of_a_waiting_thread_from_running) {
  const int status = in_a_time_namespace([] { return run_an_event(GetParam()); });
  if (status == kNotHere) GTEST_SKIP() << "needs CAP_SYS_ADMIN, a kernel with time namespaces, and the engine";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(, TimeNamespace, testing::Values(EngineKind::uring, EngineKind::epoll),
                         [](const testing::TestParamInfo<EngineKind>& of) {
                           return std::string(of.param == EngineKind::uring ? "uring" : "epoll");
                         });

}  // namespace
}  // namespace lrpc::netrpc::test
