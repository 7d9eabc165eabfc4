// A supply of A-stacks that grows with a burst of calls, and shrinks to its first size afterwards (LRPC §5.2).
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "burst_service.h"
#include "gated_service.h"
#include "gates.h"
#include "holdings.h"
#include "inline_server.h"
#include "length.h"
#include "lrpc/detail/client/call/completion_queue.h"
#include "lrpc/detail/client/call/pending.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::AStackSupply;
using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

lrpc::ImportOptions growing(Gate gate = Gate::adaptive) {
  return {.gate = gate, .supply = AStackSupply::grow, .grown_idle = 50ms};
}

/// Starts `callers` threads. Each makes a call that ends when all calls are there.
void meet(Burst::Client& client, std::uint32_t callers) {
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < callers; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(client.Meet(callers).value(), callers); });
  }
  for (auto& thread : threads) thread.join();
}

class Growth : public testing::TestWithParam<Gate> {};

TEST_P(Growth, lets_sixty_four_callers_run_at_once_on_two_astacks_and_goes_back) {
  LocalBurst burst(growing(GetParam()));
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(burst.client->Null());
  const Holdings before = Holdings::of();
  for (int round = 0; round < 3; ++round) {
    burst.service.forget();
    meet(*burst.client, 64);
    EXPECT_LE(burst.server.statistics().astacks_grown, 128U) << "more than twice of what was needed";
    EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
    EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }))
        << Holdings::of().regions << " regions, " << Holdings::of().descriptors << " descriptors";
  }
  EXPECT_EQ(burst.client->Add(1, 2).value(), 3);
  EXPECT_EQ(burst.server.statistics().growths_refused, 0U);
}

TEST_P(Growth, serves_started_calls_of_one_thread) {
  LocalBurst burst(growing(GetParam()));
  for (int round = 0; round < 2; ++round) {
    burst.service.forget();
    std::vector<decltype(burst.client->start().Meet(1))> meetings;
    for (int i = 0; i < 40; ++i) meetings.push_back(burst.client->start().Meet(40));
    for (auto& meeting : meetings) EXPECT_EQ(meeting.finish().value(), 40U);
    EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
  }
}

TEST_P(Growth, serves_calls_that_nobody_waits_for) {
  LocalBurst burst(growing(GetParam()));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(burst.client->Arrive(40));
  EXPECT_TRUE(eventually([&] { return burst.client->Most().value() == 40U; }));
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
}

INSTANTIATE_TEST_SUITE_P(gates, Growth, testing::ValuesIn(kRepeatedGates), gate_name);

TEST(GrowthInline, serves_started_calls_within_one_thread) {
  LocalBurst burst(growing(Gate::none));
  const InlineServer here(burst.server, burst.client->binding());
  std::vector<decltype(burst.client->start().Add(1, 1))> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(burst.client->start().Add(i, 1));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + 1);
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
  EXPECT_EQ(burst.client->Add(1, 2).value(), 3);
}

TEST(GrowthTrap, is_refused_at_bind_time) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const auto client = Burst::Client::import_over(std::move(ends->second), growing(Gate::trap));
  EXPECT_EQ(client.code(), Errc::not_supported);
}

TEST(GrowthTrap, has_no_call_timeout_either) {
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const auto client = Burst::Client::import_over(std::move(ends->second),
                                                 {.gate = Gate::trap, .call_timeout = std::chrono::seconds(1)});
  EXPECT_EQ(client.code(), Errc::not_supported);
}

TEST(GrowthClasses, grow_beside_each_other) {
  LocalBurst burst(growing());
  const std::vector<std::byte> data(100'000, std::byte{1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&, i] {
      if (i % 2 == 0) {
        EXPECT_EQ(burst.client->Meet(40).value(), 40U);
      } else {
        EXPECT_EQ(burst.client->MeetWith(40, data).value(), 40U);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
}

TEST(GrowthWatcher, is_not_needed) {
  LocalBurst burst({.supply = AStackSupply::grow, .grown_idle = 50ms, .watcher = false});
  meet(*burst.client, 30);
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
}

TEST(GrowthCompletions, of_calls_on_secondary_astacks_are_told) {
  LocalBurst burst(growing());
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  std::vector<decltype(burst.client->start().Meet(1))> meetings;
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    meetings.push_back(burst.client->start().Meet(20));
    ASSERT_TRUE((*queue)->watch(meetings.back(), [&] { ++told; }));
  }
  while (told < 20) (void)(*queue)->wait(kPatience);
  for (auto& meeting : meetings) EXPECT_EQ(meeting.finish().value(), 20U);
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
}

// ---- Limits ----

/// The most calls that are executed at once when `callers` threads nap.
std::uint32_t most_at_once(LocalBurst& burst, std::vector<Burst::Client*> clients, int callers) {
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] { EXPECT_TRUE(clients[static_cast<std::size_t>(i) % clients.size()]->NapFor(100)); });
  }
  for (auto& thread : threads) thread.join();
  lrpc::CallContext nobody;
  return burst.service.Most(nobody);
}

/// The same maximum, repeated until a request for more A-stacks was refused.
std::uint32_t most_until_refused(LocalBurst& burst, const std::vector<Burst::Client*>& clients, int callers) {
  std::uint32_t most = 0;
  EXPECT_TRUE(eventually([&] {
    most = std::max(most, most_at_once(burst, clients, callers));
    return burst.server.statistics().growths_refused > 0;
  }));
  return most;
}

TEST(GrowthLimits, of_a_binding_leave_the_others_waiting) {
  LocalBurst burst(growing(), {.max_grown_astacks_per_binding = 4});
  EXPECT_LE(most_until_refused(burst, {burst.client.get()}, 12), 6U);
}

TEST(GrowthLimits, of_a_user_are_those_of_all_its_bindings) {
  LocalBurst burst(growing(), {.max_grown_astacks_per_user = 5});
  const auto other = burst.bind(growing());
  EXPECT_LE(most_until_refused(burst, {burst.client.get(), other.get()}, 16), 9U);
}

TEST(GrowthLimits, in_bytes_hold_for_tails) {
  // Enough for three A-stacks with a tail of 100,000 bytes each, but not for four.
  LocalBurst burst(growing(), {.max_grown_bytes_per_user = 350'000});
  const std::vector<std::byte> data(100'000, std::byte{1});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_EQ(burst.client->Sum(data).value(), 100'000U); });
  for (auto& thread : threads) thread.join();
  EXPECT_LE(burst.server.statistics().astacks_grown, 3U);
}

TEST(GrowthLimits, of_zero_make_it_waiting) {
  LocalBurst burst(growing(), {.max_grown_astacks_per_user = 0});
  EXPECT_LE(most_at_once(burst, {burst.client.get()}, 6), 2U);
  EXPECT_EQ(burst.server.statistics().astacks_grown, 0U);
}

TEST(GrowthLimits, do_not_hold_a_caller_beyond_its_time) {
  LocalBurst burst({.supply = AStackSupply::grow, .call_timeout = 100ms}, {.max_grown_astacks_per_user = 0});
  // Three calls must meet, but there are two A-stacks, so these calls stay in the server. A call that ends before the
  // server has taken it up gives its A-stack back at once. Then the test makes another one.
  lrpc::CallContext nobody;
  EXPECT_TRUE(eventually([&] {
    const Errc ended = burst.client->start().Meet(3).finish().code();
    EXPECT_EQ(ended, Errc::call_aborted);
    return burst.service.Most(nobody) == 2;
  }));
  EXPECT_EQ(burst.client->NapFor(0).code(), Errc::call_aborted);
  EXPECT_EQ(burst.service.Meet(nobody, 3), 3U) << "lets them go";
}

// ---- Coming and going ----

TEST_P(Growth, by_bursts_that_come_and_go_loses_no_call) {
  LocalBurst burst({.gate = GetParam(), .supply = AStackSupply::grow, .grown_idle = 1ms});
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(burst.client->Null());
  const Holdings before = Holdings::of();
  const std::vector<std::byte> data(100'000, std::byte{1});
  const std::uint64_t seed = test_seed();
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<std::uint32_t>(seed + t));
      for (int round = rounds(150); round > 0; --round) {
        const auto number = static_cast<std::int32_t>(random() % 1000);
        switch (random() % 6) {
          case 0: EXPECT_TRUE(burst.client->NapFor(static_cast<std::uint32_t>(number) % 3)); break;
          case 1: EXPECT_EQ(burst.client->Sum(data).value(), 100'000U); break;
          case 2: EXPECT_TRUE(burst.client->Arrive(0)); break;
          case 3: std::this_thread::sleep_for(std::chrono::milliseconds(random() % 8)); break;
          case 4: {
            auto first = burst.client->start().Add(number, 1);
            auto second = burst.client->start().Add(number, 2);
            auto dropped = burst.client->start().NapFor(1);
            EXPECT_EQ(second.finish().value(), number + 2);
            EXPECT_EQ(first.finish().value(), number + 1);
            break;
          }
          default: EXPECT_EQ(burst.client->Add(number, 1).value(), number + 1);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }))
      << Holdings::of().regions << " regions, " << Holdings::of().descriptors << " descriptors, before "
      << before.regions << ", " << before.descriptors;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(burst.client->Add(i, 1).value(), i + 1);
}

TEST(GrowthEnd, of_a_binding_in_the_middle_of_a_burst_leaves_nothing) {
  LocalBurst burst;
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(burst.client->Null());
  const Holdings before = Holdings::of();
  for (int round = 0; round < 5; ++round) {
    burst.service.forget();
    auto other = burst.bind(growing());
    meet(*other, 20);
    other.reset();
  }
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
  EXPECT_TRUE(eventually([&] { return Holdings::of().within(before); }));
}

TEST(GrowthEnd, by_the_server_fails_the_calls_on_secondary_astacks) {
  LocalBurst burst(growing());
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([&] { failed += burst.client->Meet(21).code() == Errc::call_failed; });
  ASSERT_TRUE(eventually([&] {
    lrpc::CallContext nobody;
    return burst.service.Most(nobody) == 20;
  }));
  burst.server.end_binding(1);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 20);
  lrpc::CallContext nobody;
  EXPECT_EQ(burst.service.Meet(nobody, 21), 21U) << "lets the procedures go, which ran on";
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
}

TEST(GrowthEnd, of_the_server_waits_for_what_runs_on_secondary_astacks) {
  BurstService service;
  auto server = std::make_unique<lrpc::Server>();
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(Burst::serve_over(*server, std::move(ends->first), service));
  auto client = Burst::Client::import_over(std::move(ends->second), growing());
  ASSERT_TRUE(client) << client.error().message();
  std::vector<decltype(client->start().NapFor(1))> naps;
  for (int i = 0; i < 20; ++i) naps.push_back(client->start().NapFor(100));
  server.reset();
  for (auto& nap : naps) {
    const Errc outcome = nap.finish().code();
    EXPECT_TRUE(outcome == Errc::ok || outcome == Errc::call_failed || outcome == Errc::binding_revoked);
  }
  EXPECT_TRUE(eventually([&] { return client->binding().revoked(); }));
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
}

// ---- Deaths ----

TEST(GrowthDeath, of_the_server_fails_every_call_on_secondary_astacks) {
  World world;
  Process server = world.start_server({"mortal"});
  auto client = world.import("mortal", growing());
  ASSERT_TRUE(client) << client.error().message();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Null());
  const Holdings before = Holdings::of();
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&] {
      const Errc outcome = client->SleepFor(kForeverMs).code();  // the server may have died before the call
      failed += outcome == Errc::call_failed || outcome == Errc::binding_revoked;
    });
  }
  EXPECT_TRUE(eventually([&] { return Holdings::of().regions >= before.regions + 2; }));
  server.kill_and_wait();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 24);
  EXPECT_EQ(client->Null().code(), Errc::binding_revoked);
}

TEST(GrowthDeath, of_the_client_gives_the_server_everything_back) {
  World world;
  const Process server = world.start_server({"burst"});
  auto survivor = world.import("burst");
  ASSERT_TRUE(survivor);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(survivor->Null());
  const std::string pid = std::to_string(server.pid());
  const Holdings before = Holdings::of(pid);
  Process client({LRPC_TEST_CLIENT, "crowd", world.nameserver(), "burst", "24", "500"});
  EXPECT_TRUE(eventually([&] { return Holdings::of(pid).regions >= before.regions + 3; }));
  client.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return Holdings::of(pid).within(before); }))
      << Holdings::of(pid).regions << " regions, " << Holdings::of(pid).descriptors << " descriptors";
  EXPECT_EQ(survivor->Add(1, 2).value(), 3);
}

TEST(GrowthDeath, of_the_nameserver_is_nothing_to_a_burst) {
  World world;
  lrpc::Server server({.nameserver = world.nameserver()});
  Gated service;
  ASSERT_TRUE(Conformance::export_to(server, "burst", service));
  auto client = world.import("burst", growing());
  ASSERT_TRUE(client);
  world.stop_nameserver();
  const Holdings before = Holdings::of();
  std::vector<std::thread> threads;
  for (int i = 0; i < 24; ++i) threads.emplace_back([&] { EXPECT_TRUE(client->SleepFor(0)); });
  EXPECT_TRUE(service.wait_inside(24));
  EXPECT_GE(Holdings::of().regions, before.regions + 2);
  service.let_all_go();
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return Holdings::of().regions == before.regions; }));
}

TEST(GrowthFork, leaves_the_child_nothing_and_the_parent_everything) {
  LocalBurst burst(growing());
  meet(*burst.client, 20);
  int stay[2];
  ASSERT_EQ(pipe(stay), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = burst.client->Null().code() == Errc::binding_revoked;
    const bool unmapped = Holdings::of().regions == 0;
    close(stay[1]);
    char c = 0;
    (void)!read(stay[0], &c, 1);  // until the parent has checked
    _exit(refused && unmapped ? 0 : 1);
  }
  close(stay[0]);
  EXPECT_TRUE(eventually([&] { return burst.server.statistics().astacks_grown == 0; }));
  burst.service.forget();
  meet(*burst.client, 20);
  close(stay[1]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace testing_lrpc
