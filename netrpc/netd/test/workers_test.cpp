// The threads that serve other hosts' commands.
#include "workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "eventually.h"
#include "netrpc/sim/test/counted_allocations.h"

namespace lrpc::netd::test {
namespace {

/// A thread may make its first allocations late: then a further round must have none.
TEST(Workers, allocate_nothing_for_a_command_in_the_steady_state) {
  constexpr int kCommands = 300;
  constexpr int kAtOnce = 10;
  int sent = 0;
  std::atomic<int> served = 0;
  Workers workers(
      2, kNoLimit, [&](Command&&) { ++served; }, [](Rebooted) {});
  std::uint64_t fewest = ~std::uint64_t{0};
  for (int round = 0; round < 20 && fewest != 0; ++round) {
    const std::uint64_t before = netrpc::allocations_so_far();
    for (int i = 0; i < kCommands; ++i) {
      Command command;
      while (!workers.put(command)) std::this_thread::yield();
      ++sent;
      if (sent % kAtOnce == 0) {
        ASSERT_TRUE(testing_lrpc::eventually([&] { return served == sent; }));
      }
    }
    fewest = std::min(fewest, netrpc::allocations_so_far() - before);
  }
  EXPECT_EQ(fewest, 0U) << "in " << kCommands << " commands";
}

/// As many commands as may wait from two hosts.
TEST(Workers, allocate_nothing_for_commands_that_wait_in_the_steady_state) {
  constexpr int kAtOnce = 500;
  int sent = 0;
  std::atomic<int> served = 0;
  std::atomic<bool> serving = false;
  Workers workers(
      1, kNoLimit,
      [&](Command&&) {
        serving.wait(false);
        ++served;
      },
      [](Rebooted) {});
  std::uint64_t fewest = ~std::uint64_t{0};
  for (int round = 0; round < 20 && fewest != 0; ++round) {
    const std::uint64_t before = netrpc::allocations_so_far();
    for (int i = 0; i < kAtOnce; ++i, ++sent) {
      Command command;
      command.from.host = static_cast<std::uint32_t>(i % 2);
      ASSERT_TRUE(workers.put(command));
    }
    serving = true;
    serving.notify_all();
    ASSERT_TRUE(testing_lrpc::eventually([&] { return served == sent; }));
    serving = false;
    fewest = std::min(fewest, netrpc::allocations_so_far() - before);
  }
  EXPECT_EQ(fewest, 0U) << "in " << kAtOnce << " commands";
}

}  // namespace
}  // namespace lrpc::netd::test
