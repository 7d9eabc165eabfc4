// Many callers at once, over every gate: threads of one client, clients of one server; and what bindings do not share.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <numeric>

#include "conformance_service.h"
#include "world.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

std::string gate_name(const testing::TestParamInfo<Gate>& tested) {
  switch (tested.param) {
    case Gate::exchange: return "exchange";
    case Gate::handoff: return "handoff";
    case Gate::sleep: return "sleep";
    default: return "adaptive";
  }
}
const auto kGates = testing::Values(Gate::adaptive, Gate::exchange, Gate::handoff, Gate::sleep);

/// 1 if the call failed or returned something else.
template <class T>
int wrong_unless(const lrpc::Result<T>& result, const T& wanted) {
  return result && *result == wanted ? 0 : 1;
}

/// What one thread of a client does: every answer can be only this thread's.
int wrong_answers(Conformance::Client& client, std::uint32_t thread, int calls) {
  int wrong = 0;
  std::vector<std::byte> data(3'000, static_cast<std::byte>(thread));
  for (int i = 0; i < calls; ++i) {
    const auto number = static_cast<std::int32_t>(thread * 100'000) + i;
    switch (i % 5) {
      case 0: wrong += wrong_unless(client.Add(number, 1), number + 1); break;
      case 1:
        wrong +=
            wrong_unless<lrpc::String<300>>(client.Greet(std::to_string(number)), "hello, " + std::to_string(number));
        break;
      case 2: wrong += wrong_unless(client.Sum(data), std::uint64_t{3'000} * (thread & 0xff)); break;  // in the tail
      case 3: {
        std::array<std::byte, 200> bytes{};
        bytes[0] = static_cast<std::byte>(i);
        bytes[199] = static_cast<std::byte>(thread);
        wrong += !client.BigInOut(bytes) || bytes[0] != static_cast<std::byte>(thread) ||
                 bytes[199] != static_cast<std::byte>(i);
        break;
      }
      default: {
        const auto checked = client.Check(101);
        wrong += checked.raised<Conformance::TooBig>() == nullptr;
      }
    }
  }
  return wrong;
}

class Concurrency : public testing::TestWithParam<Gate> {};

TEST_P(Concurrency, threads_of_a_client_get_their_own_answers_over_one_binding) {
  PrivateServer server = start_private_server();
  auto client = Conformance::Client::import_over(std::move(server.socket), {.gate = GetParam()});
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint32_t t = 1; t <= 8; ++t) {  // more than A-stacks
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

/// What a client process says at its end.
struct Report {
  std::uint64_t wrong = 0;
  std::uint64_t calls = 0;  ///< Of Count.
  std::uint64_t sum = 0;    ///< Of what Count returned.
};

/// A client process with two threads: each with a binding of its own, and both over a third.
Report client_process(const World& world, Gate gate, std::uint32_t number) {
  Report report{.wrong = 1};
  auto shared = world.import("busy", {.timeout = 10s, .gate = gate});
  if (!shared) return report;
  std::array<Report, 2> parts;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      parts[t].wrong = 1;
      auto own = world.import("busy", {.gate = gate});
      if (!own) return;
      parts[t].wrong = static_cast<std::uint64_t>(wrong_answers(*own, number * 2 + t, 100));
      for (int i = 0; i < 200; ++i) {
        const auto counted = (i % 2 == 0 ? *own : *shared).Count();
        parts[t].wrong += !counted;
        ++parts[t].calls;
        if (counted) parts[t].sum += *counted;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return {parts[0].wrong + parts[1].wrong, parts[0].calls + parts[1].calls, parts[0].sum + parts[1].sum};
}

TEST_P(Concurrency, calls_of_many_processes_are_executed_exactly_once) {
  constexpr std::uint32_t kProcesses = 4;
  World world;
  const Process server = world.start_server({"busy"});
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  std::vector<pid_t> children;
  for (std::uint32_t number = 0; number < kProcesses; ++number) {
    const pid_t child = fork();
    if (child == 0) {
      const Report report = client_process(world, GetParam(), number);
      _exit(write(pipes[1], &report, sizeof report) == sizeof report ? 0 : 1);
    }
    children.push_back(child);
  }
  close(pipes[1]);
  Report all;
  Report one;
  while (read(pipes[0], &one, sizeof one) == sizeof one) {
    all.wrong += one.wrong;
    all.calls += one.calls;
    all.sum += one.sum;
  }
  close(pipes[0]);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_EQ(all.wrong, 0U);
  EXPECT_EQ(all.calls, kProcesses * 400U);
  // Each number from 1 up came once: nothing was lost, nothing executed twice.
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

INSTANTIATE_TEST_SUITE_P(gates, Concurrency, kGates, gate_name);

// ---- Nothing on the call path is shared between bindings ----

/// Procedures that stay until they are let go.
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

/// A server in this process. If bindings shared what a stuck call holds, these tests would not end.
class StuckBinding : public testing::TestWithParam<Gate> {
 protected:
  lrpc::Result<Conformance::Client> bind() {
    auto ends = lrpc::shim::make_socket_pair();
    if (!ends) return ends.error();
    if (auto served = Conformance::serve_over(server_, std::move(ends->first), service_); !served)
      return served.error();
    return Conformance::Client::import_over(std::move(ends->second), {.gate = GetParam()});
  }
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
  // Five calls have the five A-stacks, the other four wait for one.
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
  for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(stuck->NapFor(0));  // hot, where the gate is polled
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
    stuck->binding().object().revoke();
    caller.join();
  }
  for (int i = 0; i < 1'000; ++i) ASSERT_EQ(other->Add(i, 2).value(), i + 2);
  let_go();
}

INSTANTIATE_TEST_SUITE_P(gates, StuckBinding, kGates, gate_name);

}  // namespace
}  // namespace testing_lrpc
