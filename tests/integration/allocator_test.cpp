// Domain caching as the nameserver rules (LRPC §3.4): processors poll in the most active domains.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "conformance_service.h"
#include "eventually.h"
#include "lrpc/client.h"
#include "lrpc/server.h"
#include "poller_thread.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using namespace std::chrono_literals;
using lrpc::nameserver::MachineLoad;

/// Options for a simulated load, whatever the real one is: a machine with idle processors, or a full one.
lrpc::nameserver::NameserverOptions on_a_machine(const std::shared_ptr<std::atomic<bool>>& full = nullptr) {
  lrpc::nameserver::NameserverOptions options;
  options.allocator_tick = 10ms;
  options.allocator_rules_always = true;
  options.machine_load = [full] {
    return full != nullptr && *full ? MachineLoad{.processors = 2, .idle = 0, .running = 6}
                                    : MachineLoad{.processors = 2, .idle = 1, .running = 1};
  };
  return options;
}

#define NEEDS_TWO_PROCESSORS() \
  if (only_one_processor()) GTEST_SKIP() << "nobody polls on one processor"

/// Calls `busy` without a pause until `condition` holds. False if it never does.
template <class Condition>
bool call_until(Conformance::Client& busy, Condition condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    for (int i = 0; i < 2'000; ++i) EXPECT_TRUE(busy.Null());
    if (std::chrono::steady_clock::now() > until) return false;
  }
  return true;
}

struct Shown {
  std::uint32_t granted = 0;
  bool page = false;
  std::uint64_t hits = 0;
};
Shown shown(Conformance::Client& client) {
  auto now = client.Statistics();
  if (!now) return {};
  return {now->granted_pollers, now->allocator_page, now->poller_hits};
}

TEST(ProcessorAllocation, the_busy_server_may_poll_the_idle_one_may_not_and_grants_follow_when_roles_swap) {
  NEEDS_TWO_PROCESSORS();
  const World world(on_a_machine());
  const Process first = world.start_server({"first"});
  const Process second = world.start_server({"second"});
  auto one = world.import("first");
  auto two = world.import("second");
  ASSERT_TRUE(one && two);
  EXPECT_TRUE(shown(*one).page);
  EXPECT_EQ(shown(*one).granted, lrpc::ServerOptions{}.pollers) << "the allocator sleeps: everybody's own rule";
  Conformance::Client* busy = &*one;
  Conformance::Client* idle = &*two;
  for (int round = 0; round < 4; ++round) {
    EXPECT_TRUE(call_until(*busy, [&] {
      return shown(*busy).granted == 1 && shown(*idle).granted == 0 && world.allocator().granted == 1;
    })) << round;
    const std::uint64_t hits = shown(*busy).hits;
    EXPECT_TRUE(call_until(*busy, [&] { return shown(*busy).hits > hits; })) << round;
    std::swap(busy, idle);
  }
}

TEST(ProcessorAllocation, a_server_that_may_not_poll_serves_its_calls_all_the_same) {
  NEEDS_TWO_PROCESSORS();
  auto full = std::make_shared<std::atomic<bool>>(true);
  const World world(on_a_machine(full));
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client);
  EXPECT_TRUE(call_until(*client, [&] { return shown(*client).granted == 0; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client->Add(i, 1).value(), i + 1);
  // Repeated, because the allocator falls asleep if this client is held up for longer than its patience.
  std::uint64_t hits = 0;
  EXPECT_TRUE(call_until(*client, [&] {
    hits = shown(*client).hits;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(client->Null());
    return shown(*client).granted == 0 && shown(*client).hits == hits;
  })) << "somebody polls";
  *full = false;
  EXPECT_TRUE(call_until(*client, [&] { return shown(*client).hits > hits; }));
}

TEST(ProcessorAllocation,
     calls_go_on_by_the_servers_own_rule_while_the_nameserver_is_away_and_grants_come_back_with_it) {
  NEEDS_TWO_PROCESSORS();
  auto full = std::make_shared<std::atomic<bool>>(true);
  World world(on_a_machine(full));
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client);
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(call_until(*client, [&] { return shown(*client).page && shown(*client).granted == 0; })) << round;
    world.stop_nameserver();
    EXPECT_TRUE(call_until(*client, [&] { return !shown(*client).page; }));
    EXPECT_EQ(shown(*client).granted, lrpc::ServerOptions{}.pollers);
    const std::uint64_t hits = shown(*client).hits;
    EXPECT_TRUE(call_until(*client, [&] { return shown(*client).hits > hits; })) << "it polls again";
    world.start_nameserver();
  }
}

TEST(ProcessorAllocation, private_bindings_need_no_page) {
  PrivateServer server = start_private_server();
  auto client = Conformance::Client::import_over(std::move(server.socket));
  ASSERT_TRUE(client);
  EXPECT_FALSE(shown(*client).page);
  EXPECT_EQ(shown(*client).granted, lrpc::ServerOptions{}.pollers);
}

TEST(ProcessorAllocation, the_allocator_ticks_while_a_server_is_active_and_never_else) {
  NEEDS_TWO_PROCESSORS();
  const World world(on_a_machine());
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(world.allocator().ticks, 0U) << "nobody has called";
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t ticks = world.allocator().ticks;
    EXPECT_TRUE(call_until(*client, [&] { return world.allocator().ticks > ticks + 5; })) << round;
    // A server that was held up may wake the allocator once more after it has fallen asleep.
    EXPECT_TRUE(eventually([&] {
      const auto before = world.allocator();
      std::this_thread::sleep_for(200ms);
      return before.asleep && world.allocator().ticks == before.ticks;
    })) << round;
  }
}

TEST(ProcessorAllocation, can_be_switched_off) {
  lrpc::nameserver::NameserverOptions options;
  options.allocator_tick = lrpc::kNoLimit;
  const World world(options);
  const Process server = world.start_server({"arith"});
  auto client = world.import("arith");
  ASSERT_TRUE(client);
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(client->Null());
  EXPECT_FALSE(shown(*client).page);
  EXPECT_EQ(world.allocator().ticks, 0U);
}

}  // namespace
}  // namespace testing_lrpc
