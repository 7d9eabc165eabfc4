// One-way calls: sent and executed once, and nobody waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "eventually.h"
#include "gates.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/region.h"
#include "poller_thread.h"
#include "processor_time.h"
#include "settles.h"
#include "tasks_service.h"
#include "unserved_client.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

class OneWay : public testing::TestWithParam<Gate> {
 protected:
  LocalTasks tasks_{{.gate = GetParam()}};
  Tasks::Client& client_ = *tasks_.client;
};

TEST_P(OneWay, calls_are_executed_exactly_once) {
  constexpr std::uint32_t kCalls = 3000;
  for (std::uint32_t i = 0; i < kCalls; ++i) ASSERT_TRUE(client_.Log(i, "a line"));
  ASSERT_TRUE(settles(client_));
  for (std::uint32_t i = 0; i < kCalls; ++i) ASSERT_EQ(client_.Logged(i).value(), 1U) << i;
}

TEST_P(OneWay, calls_of_many_threads_mix_with_others_and_are_executed_exactly_once) {
  constexpr std::uint32_t kEach = 400;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < kEach; ++i) {
        EXPECT_TRUE(client_.Log(t * kEach + i, "x"));
        if (i % 7 == 0) {
          EXPECT_EQ(client_.Add(1, 2).value(), 3);
        }
        if (i % 11 == 0) {
          EXPECT_EQ(client_.start().Add(2, 2).finish().value(), 4);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(settles(client_));
  for (std::uint32_t i = 0; i < 4 * kEach; ++i) ASSERT_EQ(client_.Logged(i).value(), 1U) << i;
}

TEST_P(OneWay, calls_do_not_wait_for_their_procedures) {
  for (std::uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(client_.LogSlowly(i, kUntilLetGo));
  EXPECT_TRUE(eventually([&] { return tasks_.service.staying == 16; })) << "none has returned";
  tasks_.service.let_all_go();
  EXPECT_TRUE(settles(client_));
}

INSTANTIATE_TEST_SUITE_P(gates, OneWay, testing::ValuesIn(kRepeatedGates), gate_name);

/// If `to_be_kept` and the poller executes it, Add blocks, and so keeps the poller.
struct PollerKept : TasksService {
  void Null(CallContext&) { last_polled = on_poller_thread(); }
  std::int32_t Add(CallContext&, std::int32_t a, std::int32_t b) {
    if (to_be_kept && on_poller_thread()) {
      kept = true;
      while (to_be_kept) std::this_thread::sleep_for(1ms);
      kept = false;
    }
    return a + b;
  }
  void Log(CallContext& call, std::uint32_t number, const lrpc::String<200>& text) {
    last_polled = on_poller_thread();
    TasksService::Log(call, number, text);
    ++logged;
  }
  std::atomic<bool> to_be_kept{false};
  std::atomic<bool> kept{false};
  std::atomic<bool> last_polled{false};
  std::atomic<std::uint32_t> logged{0};
};

lrpc::Result<Tasks::Client> bind(lrpc::Server& server, PollerKept& service) {
  auto ends = lrpc::shim::make_socket_pair();
  if (!ends) return ends.error();
  if (auto served = Tasks::serve_over(server, std::move(ends->first), service); !served) return served.error();
  return Tasks::Client::import_over(std::move(ends->second), {.gate = Gate::exchange});
}

/// A poller that is kept looks at no A-stack. A call that is left to it (H3) would wait for ever.
TEST(OneWayBesideAPoller, that_another_clients_procedure_keeps_is_executed_all_the_same) {
  PollerKept service;
  lrpc::Server server({.estack_idle = lrpc::kNoLimit});
  auto client = bind(server, service);
  auto other = bind(server, service);
  ASSERT_TRUE(client && other);
  const auto log = [&] {
    const std::uint32_t before = service.logged;
    return client->Log(1, "x") && eventually([&] { return service.logged == before + 1; });
  };
  for (int round = 0; round < 2; ++round) {
    std::atomic<bool> end{false};
    std::thread caller([&] {
      while (!end) EXPECT_TRUE(other->Add(1, 2));
    });
    bool executed = true;
    for (int i = 0; i < 3'000 && executed && !service.last_polled; ++i) executed = log();
    const bool polled = service.last_polled;
    service.to_be_kept = executed && polled;
    const bool kept = service.to_be_kept && eventually([&] { return service.kept.load(); });
    for (int i = 0; i < 20 && kept && executed; ++i) executed = log();
    EXPECT_TRUE(executed);
    EXPECT_EQ(kept, service.kept);
    service.last_polled = false;
    end = true;
    service.to_be_kept = false;
    caller.join();
    if (!polled) GTEST_SKIP() << "no poller has come by";
  }
}

/// The same of a started call. A thread that starts one at a time uses the same A-stack each time.
TEST(StartedBesideAPoller, that_is_kept_gets_another_estack_if_its_own_has_gone_to_other_calls) {
  PollerKept service;
  lrpc::Server server({.max_estacks = 2, .estack_idle = lrpc::kNoLimit});
  auto client = bind(server, service);
  auto other = bind(server, service);
  ASSERT_TRUE(client && other);
  auto held = other->start().Add(1, 2);
  for (int round = 0; round < 100 && !service.kept; ++round) {
    service.to_be_kept = false;
    EXPECT_TRUE(held.finish());
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(other->start().Add(1, 2).finish());
      EXPECT_TRUE(client->start().Null().finish());
    }
    service.to_be_kept = service.last_polled.load();
    held = other->start().Add(1, 2);
    EXPECT_TRUE(eventually([&] { return service.kept || held.ready(); }));
  }
  if (!service.kept) GTEST_SKIP() << "no poller has come by";

  // The poller has the A-stacks of both. Two calls that stay need both E-stacks elsewhere.
  auto one = other->start().NapFor(kUntilLetGo);
  auto two = other->start().NapFor(kUntilLetGo);
  EXPECT_TRUE(eventually([&] { return service.staying == 2; }));
  service.let_all_go();
  EXPECT_TRUE(one.finish() && two.finish());

  const auto call = client->start().Null();
  EXPECT_TRUE(eventually([&] { return call.ready(); }));
  EXPECT_TRUE(service.kept) << "the poller has not executed it";
  service.to_be_kept = false;
  EXPECT_TRUE(held.finish());
}

TEST(OneWaySupply, more_calls_than_astacks_wait_for_the_first_to_be_executed) {
  LocalTasks tasks;
  for (std::uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(tasks.client->LogSlowly(i, 20));
  ASSERT_TRUE(settles(*tasks.client));
  for (std::uint32_t i = 0; i < 40; ++i) EXPECT_EQ(tasks.client->Logged(i).value(), 1U);
}

TEST(OneWaySupply, more_calls_than_astacks_are_refused_where_the_binding_does_not_wait) {
  LocalTasks tasks({.supply = lrpc::AStackSupply::fail});
  for (std::uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(tasks.client->LogSlowly(i, kUntilLetGo));
  EXPECT_EQ(tasks.client->LogSlowly(16, 0).code(), Errc::no_astack);
  tasks.service.let_all_go();
  ASSERT_TRUE(settles(*tasks.client));
  EXPECT_TRUE(tasks.client->LogSlowly(17, 0));
}

class ServedByNobody : public UnservedClient<Tasks::Client, Tasks::kPdl> {
 protected:
  /// `call` makes a call that nobody waits for. After it has got all A-stacks, the next one waits until any call has
  /// returned. A caller that slept for the oldest alone, or for none, would not be woken by the return of another one.
  template <class Call>
  void expect_that_any_return_lets_the_next_one_go(const Heads& heads, lrpc::shim::Turn turn, Call call) {
    namespace shim = lrpc::shim;
    for (std::size_t i = 0; i < heads.size(); ++i) call();
    std::thread next(call);
    EXPECT_TRUE(eventually([&] {
      return std::ranges::all_of(heads, [](const auto* head) { return shim::load_word(*head).caller_sleeps(); });
    }));
    shim::return_to_caller(*heads.back(), shim::CallWord::returned(1, 0));
    next.join();
    EXPECT_TRUE(shim::load_word(*heads.back()).is(turn, 2));
  }
};

TEST_F(ServedByNobody, one_way_calls_end_if_the_server_calls_the_binding_revoked_and_lets_it_stand) {
  const Heads heads = heads_of("Log");
  for (std::size_t i = 0; i < heads.size(); ++i) ASSERT_TRUE(client_->Log(1, "nobody executes this"));
  for (auto* head : heads) head->word.fetch_or(lrpc::shim::CallWord::kRevoked);
  // Without a deadline: a caller that polled such a word would never stop.
  const auto began = processor_time();
  EXPECT_EQ(client_->Log(2, "nor this").code(), Errc::binding_revoked);
  EXPECT_LT(processor_time() - began, 200ms) << "it has been polling";
}

TEST_F(ServedByNobody, one_way_calls_let_the_next_one_go_when_any_of_them_has_returned) {
  expect_that_any_return_lets_the_next_one_go(heads_of("Log"), lrpc::shim::Turn::called,
                                              [&] { EXPECT_TRUE(client_->Log(1, "nobody executes this")); });
}

TEST_F(ServedByNobody, dropped_calls_let_the_next_one_go_when_any_of_them_has_returned) {
  expect_that_any_return_lets_the_next_one_go(heads_of("Null"), lrpc::shim::Turn::abandoned,
                                              [&] { const auto dropped = client_->start().Null(); });
}

/// The server's return wakes only waiters that have looked for such a call. The others would sleep for 100 ms.
TEST(OneWaySupply, tells_those_that_wait_for_an_astack_of_each_call_that_was_sent_or_dropped) {
  LocalTasks tasks;
  lrpc::client::BindingObject& object = lrpc::detail::StubAccess::object(tasks.client->binding());
  const auto told = [&] {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < Tasks::kPdl.classes.size(); ++i)
      sum += object.astacks(static_cast<std::uint16_t>(i)).wakes();
    return sum;
  };
  const std::uint32_t before = told();
  ASSERT_TRUE(tasks.client->LogSlowly(1, kUntilLetGo));
  const std::uint32_t after_sent = told();
  EXPECT_NE(after_sent, before);
  { const auto dropped = tasks.client->start().NapFor(kUntilLetGo); }
  EXPECT_NE(told(), after_sent);
  tasks.service.let_all_go();
  EXPECT_TRUE(settles(*tasks.client));
}

TEST(OneWayErrors, are_those_of_sending_only) {
  LocalTasks tasks;
  EXPECT_EQ(tasks.client->Log(1, std::string(201, 'x')).code(), Errc::argument_too_long);
  EXPECT_TRUE(tasks.client->LogAndThrow(2));
  ASSERT_TRUE(settles(*tasks.client));
  EXPECT_EQ(tasks.client->Logged(2).value(), 1U);
}

TEST(OneWayErrors, say_that_the_server_is_gone) {
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER);
  auto client = Tasks::Client::import_over(std::move(server.socket));
  ASSERT_TRUE(client) << client.error().message();
  ASSERT_TRUE(client->Log(1, "x"));
  server.process.kill_and_wait();
  EXPECT_TRUE(eventually([&] { return client->binding().revoked(); }));
  EXPECT_EQ(client->Log(2, "x").code(), Errc::binding_revoked);
}

}  // namespace
}  // namespace testing_lrpc
