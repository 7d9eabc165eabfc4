// Nested calls through chains of domains: each link serves the previous one and calls the next (LRPC §3.2, §5.3).
#include <gtest/gtest.h>

#include <optional>

#include "chain_service.h"
#include "eventually.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using namespace std::chrono_literals;

class Chains : public testing::Test {
 protected:
  void start(std::uint32_t links) {
    for (std::uint32_t i = 0; i < links; ++i) {
      links_.emplace_back(Process({LRPC_TEST_CHAIN_LINK, world_.nameserver(), std::to_string(i)}));
    }
  }
  lrpc::Result<Chain::Client> import(std::uint32_t link, lrpc::ImportOptions options = {}) {
    options.nameserver = world_.nameserver();
    return Chain::Client::import("link-" + std::to_string(link), options);
  }
  /// Waits until the link has these counts: of calls that it holds, and of calls that it has released.
  static void wait_for_holds(Chain::Client& link, const Chain::HoldsResults& wanted) {
    EXPECT_TRUE(eventually([&] { return link.Holds().value() == wanted; }))
        << link.Holds()->waiting << " wait, " << link.Holds()->let_go << " were let go";
  }

  World world_;
  std::vector<Process> links_;
};

TEST_F(Chains, carry_calls_and_results_through_eight_domains) {
  start(8);
  auto client = import(0);
  ASSERT_TRUE(client) << client.error().message();
  for (int round = 0; round < 20; ++round) {
    std::uint64_t sum = 0;
    for (std::uint32_t depth = 0; depth < 8; ++depth) {
      sum += depth;
      const auto summed = client->Sum(depth);
      ASSERT_TRUE(summed) << summed.error().message();
      EXPECT_EQ(*summed, (Chain::SumResults{.sum = sum, .hops = depth}));
    }
  }
  EXPECT_FALSE(client->Sum(8)) << "there is no ninth";
  EXPECT_TRUE(client->Sum(7));
}

TEST_F(Chains, carry_the_calls_of_several_clients_at_once) {
  start(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto client = import(0);
      ASSERT_TRUE(client) << client.error().message();
      for (int i = 0; i < 50; ++i) EXPECT_EQ(client->Sum(3).value().sum, 6U);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(Chains, carry_callbacks_all_the_way_back_while_every_call_waits) {
  start(6);
  auto client = import(0);
  ASSERT_TRUE(client) << client.error().message();
  ReportEnd end;
  lrpc::Server own;
  ASSERT_TRUE(client->serve_callbacks(own, end));
  for (std::uint64_t ticket = 1; ticket <= 10; ++ticket) {
    for (std::uint32_t depth = 0; depth < 6; ++depth) {
      const auto reported = client->SumByReports(depth, ticket * 100 + depth);
      ASSERT_TRUE(reported) << reported.error().message() << " at depth " << depth;
      EXPECT_EQ(*reported, depth * (depth + 1) / 2 + 1);
      EXPECT_EQ(end.last_ticket, ticket * 100 + depth);
    }
  }
}

TEST_F(Chains, a_death_in_the_middle_fails_the_call_at_once_and_drops_the_return_from_behind) {
  start(3);
  auto client = import(0);
  auto last = import(2);
  ASSERT_TRUE(client && last);
  ASSERT_TRUE(client->Sum(2));
  std::optional<Errc> ended;
  std::thread caller([&] { ended = client->Hold(2).code(); });
  wait_for_holds(*last, {.waiting = 1, .let_go = 0});
  links_[1].kill_and_wait();
  caller.join();
  EXPECT_EQ(ended, Errc::call_failed);
  wait_for_holds(*last, {.waiting = 0, .let_go = 1});
  EXPECT_EQ(last->Sum(0).value().sum, 2U) << "the last domain lives";
  EXPECT_EQ(client->Sum(0).value().sum, 0U) << "and so does the first";
  EXPECT_FALSE(client->Sum(1));

  links_[1] = Process({LRPC_TEST_CHAIN_LINK, world_.nameserver(), "1"});
  EXPECT_EQ(client->Sum(2).value().sum, 3U) << "the chain is whole again";
}

TEST_F(Chains, the_death_of_the_first_domain_fails_its_callers_whatever_it_waits_for) {
  start(2);
  auto client = import(0);
  auto last = import(1);
  ASSERT_TRUE(client && last);
  std::vector<std::thread> callers;
  std::atomic<int> failed{0};
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] { failed += client->Hold(1).code() == Errc::call_failed; });
  }
  wait_for_holds(*last, {.waiting = 3, .let_go = 0});
  links_[0].kill_and_wait();
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(failed, 3);
  wait_for_holds(*last, {.waiting = 0, .let_go = 3});
}

TEST_F(Chains, a_caller_that_gives_up_leaves_the_chain_as_it_was) {
  start(2);
  auto client = import(0, {.call_timeout = 100ms});
  auto last = import(1);
  ASSERT_TRUE(client && last);
  auto asks = import(0);
  ASSERT_TRUE(asks);
  // Repeats until a call is abandoned in the middle, after the first link has begun. A call that succeeds may be slow,
  // too.
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(client->Hold(0).code(), Errc::call_aborted);
    return asks->Holds().value().let_go != 0;
  }));
  EXPECT_TRUE(eventually([&] { return asks->Holds().value().waiting == 0; }));
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(eventually([&] {
      const auto sum = client->Sum(1);
      return sum && sum->sum == 1;
    }));
  }
}

}  // namespace
}  // namespace testing_lrpc
