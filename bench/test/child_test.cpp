#include "core/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::bench {
namespace {

TEST(Child, an_idle_process_is_found_idle_and_a_child_that_hangs_is_killed) {
  auto child = Child::spawn("sleeper", own_seat(), [] {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    return 0;
  });
  ASSERT_TRUE(child);
  wait_until_idle(child->pid(), std::chrono::microseconds(200), std::chrono::milliseconds(1000));
  auto ended = child->wait(std::chrono::milliseconds(50));
  EXPECT_EQ(ended.code(), Errc::timed_out);
}

TEST(Child, the_exit_status_comes_back) {
  auto child = Child::spawn("quick", own_seat(), [] { return 7; });
  ASSERT_TRUE(child);
  auto ended = child->wait(std::chrono::minutes(4));
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, 7);
}

TEST(RunClient, fails_with_what_the_body_returns_and_where_the_body_exits_instead) {
  const auto ran = [](const std::function<Status()>& body) {
    return run_client(own_seat(), std::chrono::minutes(4), body);
  };
  EXPECT_TRUE(ran([] { return Status{}; }));
  EXPECT_EQ(ran([]() -> Status { return Error{Errc::limit_reached, "too many"}; }).code(), Errc::limit_reached);
  const Status left = ran([]() -> Status { ::_exit(3); });
  EXPECT_EQ(left.code(), Errc::call_failed);
  EXPECT_NE(left.error().message().find("status 3"), std::string::npos) << left.error().message();
}

TEST(Child, what_a_leader_has_started_ends_with_it) {
  auto started = Shared<std::atomic<pid_t>>::create();
  ASSERT_TRUE(started);
  auto leader = Child::spawn_leader("leader", own_seat(), [&]() -> int {
    const pid_t other = ::fork();
    if (other == 0) {
      for (;;) ::pause();
    }
    (*started)->store(other);
    for (;;) ::pause();
  });
  ASSERT_TRUE(leader);
  while ((*started)->load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const pid_t other = (*started)->load();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, other, 0)));
  ASSERT_TRUE(pidfd);
  leader->kill();
  pollfd ended{pidfd.get(), POLLIN, 0};
  constexpr int kMinute = 60'000;
  if (::poll(&ended, 1, kMinute) == 1) return;
  ::kill(other, SIGKILL);
  FAIL() << "it lives on";
}

}  // namespace
}  // namespace lrpc::bench
