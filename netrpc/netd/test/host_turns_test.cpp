// Which hosts' commands are served, and in which order, when there are more commands than threads.
#include "host_turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "eventually.h"
#include "workers.h"

namespace lrpc::netd::test {
namespace {

using netpath::HostAddress;

constexpr HostAddress kGreedy = 1;
constexpr HostAddress kModest = 2;

[[nodiscard]] Command command_of(HostAddress host, std::uint16_t number = 0) {
  Command command;
  command.from.host = host;
  command.number = number;
  return command;
}

[[nodiscard]] bool add(HostTurns& turns, HostAddress host, std::uint16_t number = 0) {
  Command command = command_of(host, number);
  return turns.add(command);
}

TEST(HostTurns, serves_the_host_with_the_fewest_threads_and_each_in_order) {
  HostTurns turns(kNoLimit, 100);
  for (std::uint16_t number = 1; number <= 4; ++number) ASSERT_TRUE(add(turns, kGreedy, number));
  for (std::uint16_t number = 5; number <= 6; ++number) ASSERT_TRUE(add(turns, kModest, number));
  std::vector<std::uint16_t> order;
  while (turns.any()) order.push_back(turns.next().number);
  EXPECT_EQ(order, (std::vector<std::uint16_t>{1, 5, 2, 6, 3, 4}));
  EXPECT_EQ(turns.waiting(), 0U);
}

TEST(HostTurns, leaves_threads_to_hosts_that_come_later) {
  HostTurns turns(16, 100);
  const auto serve = [&](HostAddress host) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(add(turns, host));
    int served = 0;
    for (; turns.any(); ++served) (void)turns.next();
    return served;
  };
  EXPECT_EQ(serve(kGreedy), 7);
  EXPECT_EQ(serve(kModest), 3);
  EXPECT_EQ(serve(3), 2);
  turns.done(kGreedy);
  turns.done(kGreedy);
  ASSERT_TRUE(turns.any());
  EXPECT_EQ(turns.next().from.host, 3U) << "of those that may have one more, who has the fewest";
}

TEST(HostTurns, leaves_places_in_the_queue_to_hosts_that_come_later) {
  HostTurns turns(kNoLimit, 16);
  std::vector<int> waiting;
  for (const HostAddress host : {kGreedy, kModest}) {
    waiting.push_back(0);
    while (add(turns, host)) ++waiting.back();
  }
  EXPECT_EQ(waiting, (std::vector<int>{7, 3}));
  EXPECT_EQ(turns.take_all().size(), 10U);
  EXPECT_FALSE(turns.any());
  EXPECT_TRUE(add(turns, kGreedy));
}

TEST(Workers, serve_a_host_while_the_calls_of_another_one_take_long) {
  constexpr std::size_t kThreads = 8;
  std::atomic<bool> released = false;
  std::atomic<std::size_t> greedy = 0;
  std::atomic<std::size_t> modest = 0;
  Workers workers(
      kThreads, kThreads,
      [&](Command&& command) {
        if (command.from.host == kModest) {
          ++modest;
        } else {
          ++greedy;
          released.wait(false);
        }
      },
      [](Rebooted) {});
  for (std::size_t i = 0; i < 2 * kThreads; ++i) {
    Command command = command_of(kGreedy);
    ASSERT_TRUE(workers.put(command));
  }
  EXPECT_TRUE(testing_lrpc::eventually([&] { return greedy == 3; }));
  for (std::size_t i = 0; i < kThreads; ++i) {
    Command command = command_of(kModest);
    ASSERT_TRUE(workers.put(command));
  }
  EXPECT_TRUE(testing_lrpc::eventually([&] { return modest == kThreads; }));
  EXPECT_EQ(greedy, 3U);
  released = true;
  released.notify_all();
  EXPECT_TRUE(testing_lrpc::eventually([&] { return greedy == 2 * kThreads; }));
}

}  // namespace
}  // namespace lrpc::netd::test
