// Short supplies of E-stacks and A-stacks; nested calls; the threads of several interfaces (LRPC §3.2, §5.2).
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "gated_service.h"
#include "inline_server.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;

TEST(Supply, many_bindings_live_with_few_estacks) {
  World world;
  const Process server = world.start_server({"crowded"}, {"--max-estacks", "3"});
  std::vector<Conformance::Client> clients;
  for (int i = 0; i < 20; ++i) {
    auto client = world.import("crowded", {.gate = lrpc::Gate::handoff});
    ASSERT_TRUE(client) << client.error().message();
    clients.push_back(*std::move(client));
  }
  for (int round = 0; round < 5; ++round) {
    for (auto& client : clients) ASSERT_EQ(client.Add(round, 7).value(), round + 7);
  }
  const auto counted = clients.front().Statistics();
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->bindings, 20U);
  EXPECT_LE(counted->estacks, 3U);
  EXPECT_GT(counted->reclaimed, 0U);
}

TEST(Supply, a_thousand_bindings_live_with_eight_estacks) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < 4096) GTEST_SKIP() << "needs 4,096 file descriptors, may have " << limit.rlim_max;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // the server inherits it
  World world;
  const Process server = world.start_server({"thousand"}, {"--max-estacks", "8", "--max-bindings-per-client", "1000"});
  std::vector<Conformance::Client> clients;
  for (int i = 0; i < 1000; ++i) {
    auto client = world.import("thousand");
    ASSERT_TRUE(client) << i << ": " << client.error().message();
    clients.push_back(*std::move(client));
  }
  for (auto& client : clients) ASSERT_EQ(client.Add(1, 7).value(), 8);
  // Some of them from several threads: E-stacks change their A-stacks while calls run.
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(clients[t * 250 + static_cast<std::size_t>(i)].Add(i, 1).value(), i + 1);
    });
  }
  for (auto& thread : threads) thread.join();
  const auto counted = clients.front().Statistics();
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->bindings, 1000U);
  EXPECT_LE(counted->estacks, 8U);
}

TEST(Supply, captured_estacks_delay_others_but_do_not_lose_their_calls) {
  World world;
  const Process server = world.start_server({"captured"}, {"--max-estacks", "2"});
  auto sleeper = world.import("captured");
  auto other = world.import("captured");
  ASSERT_TRUE(sleeper && other);
  std::thread one([&] { EXPECT_TRUE(sleeper->SleepFor(200)); });
  std::thread two([&] { EXPECT_TRUE(sleeper->SleepFor(200)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(other->Add(1, 2).value(), 3);
  one.join();
  two.join();
}

TEST(Supply, a_binding_that_does_not_wait_says_no_astack) {
  Gated service;
  lrpc::Server server;
  auto client = bind_privately(server, service, {.supply = lrpc::AStackSupply::fail});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 5; ++i) sleepers.emplace_back([&] { EXPECT_TRUE(client->SleepFor(0)); });
  EXPECT_TRUE(service.wait_inside(5));
  EXPECT_EQ(client->SleepFor(0).code(), Errc::no_astack);
  service.let_all_go();
  for (auto& thread : sleepers) thread.join();
  EXPECT_TRUE(client->SleepFor(0));
}

/// Both threads use one A-stack. The other thread takes it again each time before the thread that it wakes has looked.
TEST(Supply, a_caller_gets_an_astack_although_another_thread_calls_without_pause) {
  struct Napping : Gated {
    void SleepFor(lrpc::CallContext& call, std::uint32_t milliseconds) {
      if (milliseconds == 0) return Gated::SleepFor(call, 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    }
  } service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::thread> holders;
  for (int i = 0; i < 4; ++i) holders.emplace_back([&] { EXPECT_TRUE(client->SleepFor(0)); });
  EXPECT_TRUE(service.wait_inside(4));
  std::atomic<bool> enough{false};
  std::atomic<int> calls{0};
  std::thread restless([&] {
    for (; !enough; ++calls) EXPECT_TRUE(client->SleepFor(2));
  });
  EXPECT_TRUE(eventually([&] { return calls != 0; }));
  for (int i = 0; i < 3 && !HasFailure(); ++i) {
    const lrpc::CallScope end_of_a_hang(std::chrono::minutes(1));
    EXPECT_TRUE(client->SleepFor(2)) << "call " << i;
    const int before = calls;
    EXPECT_TRUE(eventually([&] { return calls > before + 1; })) << "the other one starves now";
  }
  enough = true;
  restless.join();
  service.let_all_go();
  for (auto& thread : holders) thread.join();
}

/// The thread that starves does nothing here, as if it had no processor.
TEST(Supply, a_caller_that_does_not_starve_itself_gets_the_astack_that_one_that_starves_leaves_idle) {
  ConformanceService service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  lrpc::client::BindingObject& object = lrpc::detail::StubAccess::object(client->binding());
  for (std::size_t i = 0; i < Conformance::kPdl.classes.size(); ++i)
    object.astacks(static_cast<std::uint16_t>(i)).starve();
  Errc result = Errc::call_aborted;  // several attempts, because a slow machine also aborts calls
  for (int i = 0; i < 100 && result == Errc::call_aborted; ++i) {
    const lrpc::CallScope too_short_to_starve(std::chrono::milliseconds(5));
    result = client->Add(1, 2).code();
  }
  EXPECT_EQ(result, Errc::ok);
  for (std::size_t i = 0; i < Conformance::kPdl.classes.size(); ++i)
    object.astacks(static_cast<std::uint16_t>(i)).end_starving();
}

TEST(Supply, calls_nest_from_server_to_server) {
  World world;
  const Process inner = world.start_server({"inner"});
  const Process outer = world.start_server({"outer"});
  auto client = world.import("outer");
  ASSERT_TRUE(client);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client->Through("inner", i, 1).value(), i + 1);
  EXPECT_EQ(client->Through("outer", 1, 1).value(), 2) << "a server may even call itself";
  const auto refused = client->Through("nobody", 1, 1);
  ASSERT_NE(refused.raised<Conformance::Refused>(), nullptr);
  EXPECT_NE(refused.raised<Conformance::Refused>()->reason.view().find("nobody"), std::string_view::npos);
}

TEST(Supply, the_calling_thread_knows_how_deeply_its_calls_are_nested) {
  // Both sides in this thread, so that the procedure sees its caller's stack of linkages.
  struct Nested : ConformanceService {
    unsigned seen = 0;
    void Null(lrpc::CallContext&) { seen = lrpc::client::nesting_depth(); }
  } service;
  auto server = std::make_unique<lrpc::Server>();
  auto client = bind_privately(*server, service, {.gate = lrpc::Gate::none});
  ASSERT_TRUE(client) << client.error().message();
  EXPECT_EQ(client->Null().code(), Errc::call_failed) << "nobody serves it yet";
  std::optional<InlineServer> here(std::in_place, *server, client->binding());
  ASSERT_TRUE(client->Null());
  EXPECT_EQ(service.seen, 1U);
  EXPECT_EQ(lrpc::client::nesting_depth(), 0U);
  here.reset();
  server.reset();  // also waits until the serving thread has ended the binding
}

/// The resident shared memory of this process, in KiB.
long resident_shared_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssShmem:")) return std::stol(line.substr(9));
  }
  return -1;
}

TEST(Supply, large_tails_are_given_back_once_they_are_idle) {
  World world;
  const Process server = world.start_server({"large"});
  auto client = world.import("large");
  ASSERT_TRUE(client);
  std::vector<std::byte> data(4'194'304);
  // On a stalled machine the pages may be given back before the check: then try again.
  EXPECT_TRUE(eventually([&] {
    EXPECT_TRUE(client->SumInPlace(data));
    return resident_shared_kib() >= 4096;
  }));
  EXPECT_TRUE(eventually([&] { return resident_shared_kib() < 1024; }));
  EXPECT_EQ(client->SumInPlace(data).value(), 0U);
}

/// Calls of SumInPlace with an odd number of bytes block until they are released.
struct HeldSums : Gated {
  std::uint64_t SumInPlace(lrpc::CallContext& call, std::span<const std::byte> data) {
    if (data.size() % 2 != 0) (void)SleepFor(call, 0);
    return data.size();
  }
};

TEST(Supply, a_tail_that_was_in_a_call_then_is_given_back_later) {
  HeldSums service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  const std::vector<std::byte> data(4'194'304);
  std::thread held([&] { EXPECT_TRUE(client->SumInPlace(std::span(data).first(4'194'303))); });
  EXPECT_TRUE(service.wait_inside(1));
  EXPECT_TRUE(client->SumInPlace(data));
  // Tails were given back, except the one that a call uses.
  EXPECT_TRUE(eventually([&] { return resident_shared_kib() < 6 * 1024; }));
  EXPECT_GE(resident_shared_kib(), 4 * 1024);
  service.let_all_go();
  held.join();
  EXPECT_TRUE(eventually([&] { return resident_shared_kib() < 1024; }));
}

TEST(Supply, a_tail_of_a_dropped_call_is_given_back_though_no_other_call_needs_its_astack) {
  HeldSums service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  {
    const auto dropped = client->start().SumInPlace(std::vector<std::byte>(4'194'303));
    EXPECT_TRUE(service.wait_inside(1));
  }
  EXPECT_GE(resident_shared_kib(), 2 * 1024) << "the procedure may read it";
  service.let_all_go();
  EXPECT_TRUE(eventually([&] { return resident_shared_kib() < 1024; }));
}

TEST(Supply, a_tail_of_a_dropped_call_is_given_back_if_only_results_are_in_it) {
  ConformanceService service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::byte> room(4'194'304);
  lrpc::Buffer data(room);
  {
    const auto dropped = client->start().Fill(4'194'304, 7, data);
    EXPECT_TRUE(eventually([&] { return dropped.ready(); }));
    EXPECT_GE(resident_shared_kib(), 2 * 1024) << "it may still be finished";
  }
  EXPECT_TRUE(eventually([&] { return resident_shared_kib() < 1024; }));
}

}  // namespace
}  // namespace testing_lrpc
