// Many callers at once, over every gate: threads of one client, and clients of one server. And what bindings do not
// share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "busy_calls.h"
#include "conformance_service.h"
#include "gates.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

class Concurrency : public testing::TestWithParam<Gate> {};

TEST_P(Concurrency, threads_of_a_client_get_their_own_answers_over_one_binding) {
  PrivateServer server = start_private_server();
  auto client = Conformance::Client::import_over(std::move(server.socket), {.gate = GetParam()});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 1; t <= 8; ++t) {  // more than there are A-stacks
    threads.emplace_back([&, t] { wrong += wrong_answers(*client, t, 400); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Concurrency, calls_of_many_threads_are_executed_exactly_once) {
  constexpr std::uint64_t kThreads = 8;
  constexpr std::uint64_t kCalls = 500;
  PrivateServer server = start_private_server();
  auto client = Conformance::Client::import_over(std::move(server.socket), {.gate = GetParam()});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::vector<std::uint64_t>> seen(kThreads);
  std::vector<std::thread> threads;
  for (auto& own : seen) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < kCalls; ++i) {
        if (const auto counted = client->Count()) own.push_back(*counted);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::uint64_t> all;
  for (const auto& own : seen) {
    EXPECT_TRUE(std::ranges::is_sorted(own)) << "a thread's calls follow one another";
    all.insert(all.end(), own.begin(), own.end());
  }
  std::ranges::sort(all);
  std::vector<std::uint64_t> wanted(kThreads * kCalls);
  std::iota(wanted.begin(), wanted.end(), 1);
  EXPECT_EQ(all, wanted);
}

TEST_P(Concurrency, calls_of_many_processes_are_executed_exactly_once) {
  constexpr std::uint32_t kProcesses = 4;
  World world;
  const Process server = world.start_server({"busy"});
  std::vector<FILE*> clients;
  for (std::uint32_t number = 0; number < kProcesses; ++number) {
    const std::string command = std::string(LRPC_TEST_CLIENT) + " busy " + world.nameserver() + " " +
                                std::to_string(static_cast<int>(GetParam())) + " " + std::to_string(number);
    clients.push_back(popen(command.c_str(), "r"));
    ASSERT_NE(clients.back(), nullptr);
  }
  BusyReport all;
  for (FILE* client : clients) {
    unsigned long wrong = 1;
    unsigned long calls = 0;
    unsigned long sum = 0;
    EXPECT_EQ(fscanf(client, "%lu %lu %lu", &wrong, &calls, &sum), 3);
    EXPECT_EQ(pclose(client), 0);
    all.wrong += wrong;
    all.calls += calls;
    all.sum += sum;
  }
  EXPECT_EQ(all.wrong, 0U);
  EXPECT_EQ(all.calls, kProcesses * 400U);
  // Each number from 1 was returned once: no call was lost, and none executed twice.
  EXPECT_EQ(all.sum, all.calls * (all.calls + 1) / 2);
  EXPECT_EQ(world.import("busy")->Count().value(), all.calls + 1);
}

TEST_P(Concurrency, clients_that_come_and_go_do_not_disturb_those_that_stay) {
  World world;
  const Process server = world.start_server({"busy"});
  auto stays = world.import("busy", {.gate = GetParam()});
  ASSERT_TRUE(stays) << stays.error().message();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (std::uint32_t t = 1; t <= 2; ++t) {
    callers.emplace_back([&, t] {
      while (!stop) wrong += wrong_answers(*stays, t, 50);
    });
  }
  for (int i = 0; i < 40; ++i) {
    auto passes_by = world.import("busy", {.gate = GetParam()});
    ASSERT_TRUE(passes_by) << passes_by.error().message();
    EXPECT_EQ(passes_by->Add(i, i).value(), 2 * i);
  }
  stop = true;
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(gates, Concurrency, testing::ValuesIn(kRepeatedGates), gate_name);

// ---- Nothing on the call path is shared between bindings ----

/// Procedures that block until they are released.
struct StuckService : ConformanceService {
  void SleepFor(CallContext&, std::uint32_t) { stay(); }
  void NapFor(CallContext&, std::uint32_t milliseconds) {
    if (milliseconds != 0) stay();
  }
  void stay() {
    ++stuck;
    while (!let_go) std::this_thread::sleep_for(1ms);
  }
  std::atomic<int> stuck{0};
  std::atomic<bool> let_go{false};
};

/// A server in this process. If bindings shared what a blocked call holds, these tests would not end.
class StuckBinding : public testing::TestWithParam<Gate> {
 protected:
  auto bind() { return bind_privately(server_, service_, {.gate = GetParam()}); }
  void let_go() {
    service_.let_go = true;
    for (auto& thread : threads_) thread.join();
  }

  StuckService service_;
  lrpc::Server server_;
  std::vector<std::thread> threads_;
};

TEST_P(StuckBinding, with_every_astack_in_a_call_and_callers_waiting_does_not_hold_up_another) {
  auto stuck = bind();
  auto other = bind();
  ASSERT_TRUE(stuck && other);
  for (int i = 0; i < 9; ++i) threads_.emplace_back([&] { EXPECT_TRUE(stuck->SleepFor(1)); });
  // Five calls hold the five A-stacks; the other four wait for one.
  while (service_.stuck < 5) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 3'000; ++i) ASSERT_EQ(other->Add(i, 2).value(), i + 2);
  auto later = bind();
  ASSERT_TRUE(later) << later.error().message();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(later->Add(i, 3).value(), i + 3) << "new bindings and E-stacks come as ever";
  EXPECT_EQ(service_.stuck, 5);
  let_go();
}

TEST_P(StuckBinding, whose_procedure_captures_the_poller_does_not_hold_up_another) {
  auto stuck = bind();
  auto other = bind();
  ASSERT_TRUE(stuck && other);
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(stuck->NapFor(0));  // makes the A-stack hot, if the gate is polled
  threads_.emplace_back([&] { EXPECT_TRUE(stuck->NapFor(1)); });
  while (service_.stuck < 1) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 3'000; ++i) ASSERT_EQ(other->Add(i, 2).value(), i + 2);
  let_go();
}

TEST_P(StuckBinding, that_ends_while_its_calls_are_stuck_does_not_hold_up_another) {
  auto other = bind();
  ASSERT_TRUE(other);
  {
    auto stuck = bind();
    ASSERT_TRUE(stuck);
    std::thread caller([&] { EXPECT_EQ(stuck->SleepFor(1).code(), Errc::call_failed); });
    while (service_.stuck < 1) std::this_thread::sleep_for(1ms);
    lrpc::detail::StubAccess::object(stuck->binding()).revoke();
    caller.join();
  }
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(other->Add(i, 2).value(), i + 2);
  let_go();
}

INSTANTIATE_TEST_SUITE_P(gates, StuckBinding, testing::ValuesIn(kRepeatedGates), gate_name);

}  // namespace
}  // namespace testing_lrpc
