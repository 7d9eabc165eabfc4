// Calls between domains of which one may not use membarrier(2), or cannot be reached by it: started calls that nobody
// waits for are executed all the same.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <tuple>

#include "eventually.h"
#include "gates.h"
#include "lrpc/detail/shim/call/caller_policy.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller_thread.h"
#include "refused_membarrier.h"
#include "settles.h"
#include "tasks_service.h"

namespace testing_lrpc {
namespace {

using lrpc::Gate;
using lrpc::shim::PolledHint;

constexpr std::uint32_t kCalls = 1000;

/// Makes a thousand calls of each kind while pollers and E-stacks come and go. Adds to `polled` the started calls that
/// were rung for a poller.
void call_in_every_way(Tasks::Client& client, int& polled) {
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(client.Log(i, "nobody waits"));
    ASSERT_EQ(client.Add(1, static_cast<std::int32_t>(i)).value(), static_cast<std::int32_t>(i + 1));
    {
      auto call = client.start().Add(2, 2);
      if (PolledHint(lrpc::detail::StubAccess::call(call).linkage().astack.head->polled.load()).polled()) ++polled;
      ASSERT_EQ(call.finish().value(), 4);
    }
    (void)client.start().Add(3, 3);  // dropped
    ASSERT_TRUE(client.LogSlowly(kCalls + i, 0)) << "never a poller's";
    // Now and then no call follows for a while.
    if (i % 10 == 0) {
      ASSERT_TRUE(client.Log(2 * kCalls + i, "alone"));
      ASSERT_TRUE(settles(client)) << i;
    }
  }
  ASSERT_TRUE(settles(client));
}

/// Each call is executed once. With the exchange gate some calls must be rung for a poller; waits for one to come.
void expect_no_call_to_be_lost(lrpc::UniqueFd socket, Gate gate) {
  auto client = Tasks::Client::import_over(std::move(socket), {.gate = gate});
  ASSERT_TRUE(client) << client.error().message();
  const int wanted = gate == Gate::exchange && !only_one_processor() ? 100 : 0;
  int polled = 0;
  std::uint32_t rounds = 0;
  EXPECT_TRUE(eventually([&] {
    ++rounds;
    call_in_every_way(*client, polled);
    return polled >= wanted || testing::Test::HasFatalFailure();
  })) << polled
      << " calls of " << rounds * kCalls << " were rung for a poller";
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    ASSERT_EQ(client->Logged(i).value(), rounds) << i;
    ASSERT_EQ(client->Logged(kCalls + i).value(), rounds) << i;
    ASSERT_EQ(client->Logged(2 * kCalls + i).value(), i % 10 == 0 ? rounds : 0U) << i;
  }
}

/// The gate, and the errno with which membarrier(2) fails.
class Fences : public testing::TestWithParam<std::tuple<Gate, int>> {};

TEST_P(Fences, that_a_server_is_refused_lose_no_call) {
  const auto& [gate, error] = GetParam();
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER, {std::to_string(error), "comes-and-goes"});
  expect_no_call_to_be_lost(std::move(server.socket), gate);
}

std::string fence_name(const testing::TestParamInfo<std::tuple<Gate, int>>& tested) {
  return std::string(name_of(std::get<0>(tested.param))) + (std::get<1>(tested.param) == EPERM ? "" : "_not_there");
}
INSTANTIATE_TEST_SUITE_P(gates, Fences, testing::Combine(testing::ValuesIn(kRepeatedGates), testing::Values(EPERM)),
                         fence_name);
INSTANTIATE_TEST_SUITE_P(kernels, Fences, testing::Values(std::tuple(Gate::exchange, ENOSYS)), fence_name);

/// Variables for a program that is started again: the gate's number, and the inherited socket's.
constexpr const char* kGateVariable = "LRPC_TEST_GATE";
constexpr const char* kSocketVariable = "LRPC_TEST_SOCKET";

TEST(WithoutFences, DISABLED_calls_over_the_given_socket) {
  const char* const gate = std::getenv(kGateVariable);
  const char* const socket = std::getenv(kSocketVariable);
  ASSERT_TRUE(gate != nullptr && socket != nullptr);
  EXPECT_FALSE(lrpc::shim::have_shared_fence);
  lrpc::UniqueFd end(fcntl(std::atoi(socket), F_DUPFD_CLOEXEC, 0));
  ::close(std::atoi(socket));
  expect_no_call_to_be_lost(std::move(end), static_cast<Gate>(std::atoi(gate)));
}

TEST_P(Fences, that_a_client_is_refused_lose_no_call) {
  const auto& [gate, error] = GetParam();
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER, {"0", "comes-and-goes"});
  const lrpc::UniqueFd inherited(dup(server.socket.get()));
  server.socket.reset();
  setenv(kGateVariable, std::to_string(static_cast<int>(gate)).c_str(), 1);
  setenv(kSocketVariable, std::to_string(inherited.get()).c_str(), 1);
  EXPECT_EQ(run_without_membarrier("--gtest_filter=WithoutFences.DISABLED_calls_over_the_given_socket", error), 0);
}

/// Calls until a hundred calls have seen a poller. Returns the first hint that does not promise what it should; 0:
/// none.
PolledHint wrong_hint(Tasks::Client& client, bool fences) {
  int polled = 0;
  PolledHint wrong;
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < 1000; ++i) {
      auto call = client.start().Add(1, 2);
      const PolledHint hint(lrpc::detail::StubAccess::call(call).linkage().astack.head->polled.load());
      if (hint.polled()) ++polled;
      if (hint.polled() && hint.polled_and_fenced() != fences) wrong = hint;
      EXPECT_EQ(call.finish().value(), 3);
    }
    return polled >= 100 || wrong.polled();
  }));
  return wrong;
}

TEST(WithoutFences, DISABLED_pollers_say_so) {
  LocalTasks tasks({.gate = Gate::exchange});
  EXPECT_EQ(wrong_hint(*tasks.client, false).bits(), 0U);
}

TEST(WithoutFences, a_refused_fence_takes_its_time_where_nobody_may_sleep_either) {
  const pid_t child = fork();
  if (child == 0) {
    if (!refuse_membarrier() || !refuse_call(SYS_nanosleep) || !refuse_call(SYS_clock_nanosleep)) _exit(77);
    const std::uint64_t began = lrpc::shim::ticks();
    const bool fenced = lrpc::shim::heavy_shared_fence();
    _exit(!fenced && lrpc::shim::this_moment().since(began) >= 1000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no filter can be set";
  EXPECT_EQ(status, 0);
}

TEST(WithoutFences, a_poller_tells_its_callers_whether_it_can_fence_for_them) {
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on the only processor";
  {
    LocalTasks tasks({.gate = Gate::exchange});
    EXPECT_EQ(wrong_hint(*tasks.client, lrpc::shim::have_shared_fence).bits(), 0U);
  }
  EXPECT_EQ(run_without_membarrier("--gtest_filter=WithoutFences.DISABLED_pollers_say_so"), 0);
}

TEST(WithoutFences, DISABLED_pollers_say_so_from_some_moment_on) {
  LocalTasks tasks({.gate = Gate::exchange});
  EXPECT_EQ(wrong_hint(*tasks.client, lrpc::shim::have_shared_fence).bits(), 0U);
  ASSERT_TRUE(refuse_membarrier());
  // At the latest its next stint but one says so; from then on the hint stays.
  ASSERT_TRUE(eventually([&] {
    auto call = tasks.client->start().Add(1, 2);
    const PolledHint hint(lrpc::detail::StubAccess::call(call).linkage().astack.head->polled.load());
    EXPECT_TRUE(call.finish());
    return hint.polled() && !hint.polled_and_fenced();
  }));
  EXPECT_EQ(wrong_hint(*tasks.client, false).bits(), 0U);
}

TEST(WithoutFences, a_poller_that_is_refused_them_later_tells_its_callers_then) {
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on the only processor";
  // In a separate process, because its threads are refused for good.
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "fences", "--gtest_filter=WithoutFences.DISABLED_pollers_say_so_from_some_moment_on",
          "--gtest_also_run_disabled_tests", nullptr);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace testing_lrpc
