// Calls that are started now and finished later: over every gate, in any order, and with failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "conformance_service.h"
#include "eventually.h"
#include "gates.h"
#include "inline_server.h"
#include "tasks_service.h"

namespace testing_lrpc {
namespace {

using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

using Sum = decltype(std::declval<Tasks::Client&>().start().Add(0, 0));
using Nap = decltype(std::declval<Tasks::Client&>().start().NapFor(0));

/// The result of start() is for one call: if it could be kept, it could outlive its client.
template <class Starter>
concept CallableWhenKept = requires(Starter& kept) {
  kept.Add(0, 0);
};
static_assert(!CallableWhenKept<decltype(std::declval<Tasks::Client&>().start())>);
static_assert(!std::is_move_constructible_v<decltype(std::declval<Tasks::Client&>().start())>);

class StartedCalls : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(client_.Null());  // lets the gate settle
  }
  LocalTasks tasks_{{.gate = GetParam()}};
  Tasks::Client& client_ = *tasks_.client;
};

TEST_P(StartedCalls, give_what_the_synchronous_call_gives) {
  EXPECT_EQ(client_.start().Add(40, 2).finish().value(), 42);
  EXPECT_TRUE(client_.start().Null().finish());
  const auto refused = client_.start().Check(13).finish();
  ASSERT_NE(refused.raised<Tasks::Refused>(), nullptr);
  EXPECT_EQ(refused.raised<Tasks::Refused>()->code, 7U);
  EXPECT_EQ(client_.start().Check(4).finish().value(), 8U);
}

TEST_P(StartedCalls, are_in_flight_together_and_finished_in_any_order) {
  for (int round = 0; round < 200; ++round) {
    std::vector<Sum> sums;
    for (int i = 0; i < 16; ++i) sums.push_back(client_.start().Add(round, i));
    std::vector<int> order(sums.size());
    std::iota(order.begin(), order.end(), 0);
    if (round % 3 == 1) std::ranges::reverse(order);
    if (round % 3 == 2) std::rotate(order.begin(), order.begin() + round % 16, order.end());
    for (const int i : order) ASSERT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), round + i);
  }
}

TEST_P(StartedCalls, do_not_wait_for_one_another) {
  std::vector<Nap> naps;
  for (int i = 0; i < 8; ++i) naps.push_back(client_.start().NapFor(kUntilLetGo));
  EXPECT_EQ(client_.Add(1, 2).value(), 3) << "a synchronous call between them";
  EXPECT_TRUE(eventually([&] { return tasks_.service.staying == 8; })) << "all are executed at once";
  for (auto& nap : naps) EXPECT_FALSE(nap.ready());
  tasks_.service.let_all_go();
  for (auto& nap : naps) EXPECT_EQ(nap.finish().value(), kUntilLetGo);
}

TEST_P(StartedCalls, become_ready_without_being_finished) {
  auto sum = client_.start().Add(1, 2);
  EXPECT_TRUE(eventually([&] { return sum.ready(); }));
  EXPECT_EQ(sum.finish().value(), 3);
  EXPECT_TRUE(sum.ready());
  const auto again = sum.finish();
  EXPECT_EQ(again.code(), Errc::invalid_argument) << "once only";
  EXPECT_EQ(again.error().message(), "invalid argument: this call has been finished, or moved from");
}

TEST_P(StartedCalls, can_be_waited_for_a_while_and_go_on) {
  auto nap = client_.start().NapFor(kUntilLetGo);
  EXPECT_FALSE(nap.ready());
  EXPECT_FALSE(nap.wait_for(10ms));
  tasks_.service.let_all_go();
  EXPECT_TRUE(nap.wait_for(kPatience));
  EXPECT_EQ(nap.finish().value(), kUntilLetGo);
}

TEST_P(StartedCalls, write_to_what_was_passed_by_reference_when_they_are_finished) {
  std::vector<std::byte> data(100);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
  const auto original = data;
  lrpc::Buffer buffer(std::span<std::byte>(data), data.size());
  auto reversed = client_.start().Reverse(buffer);
  EXPECT_TRUE(reversed.wait_for(kPatience));
  EXPECT_EQ(data, original);
  EXPECT_EQ(reversed.finish().value(), 100U);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), original.rbegin()));
}

TEST_P(StartedCalls, say_at_the_finish_why_they_could_not_be_started) {
  std::vector<std::byte> data(1001);
  lrpc::Buffer buffer(std::span<std::byte>(data), data.size());
  auto refused = client_.start().Reverse(buffer);
  EXPECT_TRUE(refused.ready());
  EXPECT_EQ(refused.finish().code(), Errc::argument_too_long);
}

TEST_P(StartedCalls, carry_the_text_of_an_error_that_a_procedure_returns_as_synchronous_ones_do) {
  const auto fail = [&](bool started, Errc code, const std::string& text) {
    const auto number = static_cast<std::uint16_t>(code);
    return (started ? client_.start().Fail(number, text).finish() : client_.Fail(number, text)).error();
  };
  for (const bool started : {false, true}) {
    const lrpc::Error known = fail(started, Errc::invalid_argument, "the file is a directory");
    EXPECT_EQ(known.code, Errc::invalid_argument);
    EXPECT_EQ(known.text, "the file is a directory");
    EXPECT_EQ(known.message(), "the file is a directory");
    const lrpc::Error unknown = fail(started, Errc::system_error, "open: No such file");
    EXPECT_EQ(unknown.code, Errc::call_failed) << "not a code of calls";
    EXPECT_EQ(unknown.text, "open: No such file");
    EXPECT_EQ(fail(started, static_cast<Errc>(0xffff), "any number").code, Errc::call_failed);
    EXPECT_EQ(fail(started, Errc::limit_reached, std::string(300, 'x')).text, std::string(200, 'x'));
    EXPECT_EQ(fail(started, Errc::limit_reached, "one\ntwo\x1b[31m").text, "one?two?[31m");
    EXPECT_EQ(fail(started, Errc::limit_reached, std::string(199, 'x') + "€").text, std::string(199, 'x'));
    EXPECT_EQ(fail(started, Errc::limit_reached, "").message(), "limit reached");
    // The smallest slot has room for this many bytes.
    const auto code = static_cast<std::uint16_t>(Errc::limit_reached);
    const std::string part(32, 'y');
    EXPECT_EQ(client_.FailBriefly(code, part, 3).error().text, std::string(96, 'y'));
    EXPECT_EQ(client_.start().FailBriefly(code, part, 4).finish().error().text, std::string(102, 'y'));
    EXPECT_EQ(client_.Add(1, 2).value(), 3);
  }
}

TEST_P(StartedCalls, say_of_a_code_that_a_procedure_returned_only_what_it_may_say_about_its_own_call) {
  const std::set<Errc> sayable{Errc::call_failed,   Errc::argument_out_of_range, Errc::argument_too_long,
                               Errc::bad_handle,    Errc::limit_reached,         Errc::not_permitted,
                               Errc::not_supported, Errc::invalid_argument};
  const auto fail = [&](bool started, int number, const std::string& text) {
    const auto code = static_cast<std::uint16_t>(number);
    return (started ? client_.start().Fail(code, text).finish() : client_.Fail(code, text)).error();
  };
  for (const bool started : {false, true}) {
    // All numbers of Errc, some that are none, and 45 with the bits that mark other kinds of status.
    for (const int number : {0,  1,  2,  3,  4,  5,  6,   7,   8,      9,           10,          11,          12,    13,
                             14, 31, 32, 33, 34, 35, 36,  37,  38,     39,          40,          41,          42,    43,
                             44, 45, 46, 47, 48, 49, 255, 256, 0x1234, 0x4000 | 45, 0x8000 | 45, 0xc000 | 45, 0xffff}) {
      const auto code = static_cast<Errc>(number);
      const bool same = sayable.contains(code);
      const lrpc::Error silent = fail(started, number, "");
      EXPECT_EQ(silent.code, same ? code : Errc::call_failed) << number;
      const std::string words(lrpc::describe(code));  // for some codes the procedure's name follows
      if (same) {
        EXPECT_TRUE(silent.message().starts_with(words)) << silent.message();
      } else {
        EXPECT_EQ(silent.text, "the procedure returned: " + words.substr(0, words.find(';'))) << number;
      }
      const lrpc::Error told = fail(started, number, "the file is a directory");
      EXPECT_EQ(told.code, silent.code) << number;
      EXPECT_EQ(told.text, "the file is a directory") << number;
    }
  }
}

TEST_P(StartedCalls, give_their_astack_back_when_they_are_dropped) {
  for (int i = 0; i < 200; ++i) {
    auto dropped = client_.start().Add(i, i);
    auto kept = client_.start().Add(i, 1);
    dropped = client_.start().Add(0, 0);
    ASSERT_EQ(kept.finish().value(), i + 1);
  }
  { const auto nap = client_.start().NapFor(50); }
  std::vector<Sum> sums;
  for (int i = 0; i < 16; ++i) sums.push_back(client_.start().Add(i, i));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), 2 * i);
}

TEST_P(StartedCalls, can_be_finished_by_another_thread) {
  std::vector<Sum> sums;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 12; ++i) sums.push_back(client_.start().Add(i, round));
    std::thread other([&] {
      for (int i = 0; i < 12; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), i + round);
    });
    other.join();
    sums.clear();
  }
  EXPECT_EQ(client_.Add(1, 1).value(), 2);
}

TEST_P(StartedCalls, of_many_threads_mix_with_synchronous_ones_on_one_binding) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        // Three calls per thread: together more than there are A-stacks, but no thread waits while it holds all of
        // them.
        auto first = client_.start().Add(t, i);
        const auto between = client_.Add(i, i);
        if (!between || *between != 2 * i) ++wrong;
        if (i % 5 == 0) (void)client_.start().Add(0, 0);
        const auto sum = first.finish();
        if (!sum || *sum != t + i) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(gates, StartedCalls, testing::ValuesIn(kRepeatedGates), gate_name);

TEST(StartedCallsInline, are_served_when_they_are_finished) {
  LocalTasks tasks({.gate = Gate::none});
  Tasks::Client& client = *tasks.client;
  EXPECT_EQ(client.start().Add(1, 2).finish().code(), Errc::call_failed) << "nobody serves it yet";
  const InlineServer here(tasks.server, client.binding());
  auto sum = client.start().Add(1, 2);
  EXPECT_FALSE(sum.ready());
  EXPECT_EQ(sum.finish().value(), 3);
}

TEST(StartedCallsInline, give_their_astack_back_when_they_are_dropped) {
  LocalTasks tasks({.gate = Gate::none, .supply = lrpc::AStackSupply::fail});
  Tasks::Client& client = *tasks.client;
  const InlineServer here(tasks.server, client.binding());
  for (std::uint32_t i = 0; i < 50; ++i) {
    const auto dropped = client.start().Check(i);
  }
  std::vector<Sum> sums;
  for (int i = 0; i < 16; ++i) sums.push_back(client.start().Add(i, i));
  for (int i = 0; i < 16; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)].finish().value(), 2 * i);
}

TEST(StartedCallsWait, that_has_no_time_neither_polls_nor_wakes_anybody) {
  LocalTasks tasks;
  auto nap = tasks.client->start().NapFor(kUntilLetGo);
  EXPECT_TRUE(eventually([&] { return tasks.service.staying == 1; }));
  auto& linkage = lrpc::detail::StubAccess::call(nap).linkage();
  linkage.estack_may_sleep = true;  // as after a ring for a poller
  EXPECT_FALSE(nap.wait_for(0ns));
  EXPECT_TRUE(linkage.estack_may_sleep) << "it has polled, and woken the E-stack";
  tasks.service.let_all_go();
  EXPECT_EQ(nap.finish().value(), kUntilLetGo);
}

TEST(StartedCallsSupply, without_an_astack_say_so_when_the_binding_does_not_wait) {
  LocalTasks tasks({.supply = lrpc::AStackSupply::fail});
  std::vector<Nap> naps;
  for (int i = 0; i < 16; ++i) naps.push_back(tasks.client->start().NapFor(kUntilLetGo));
  EXPECT_EQ(tasks.client->start().NapFor(0).finish().code(), Errc::no_astack);
  EXPECT_EQ(tasks.client->NapFor(0).code(), Errc::no_astack);
  tasks.service.let_all_go();
  for (auto& nap : naps) EXPECT_TRUE(nap.finish());
  EXPECT_TRUE(tasks.client->start().NapFor(0).finish());
}

TEST(StartedCallsSupply, wait_for_an_astack_that_another_thread_holds) {
  LocalTasks tasks;
  std::vector<Nap> naps;
  for (int i = 0; i < 16; ++i) naps.push_back(tasks.client->start().NapFor(100));
  std::thread other([&] {
    for (auto& nap : naps) EXPECT_TRUE(nap.finish());
  });
  EXPECT_EQ(tasks.client->start().NapFor(1).finish().value(), 1U);
  other.join();
}

TEST(StartedCallsSupply, take_idle_astacks_from_threads_that_have_them_as_spares) {
  LocalTasks tasks({.supply = lrpc::AStackSupply::fail});
  const auto use_all = [&] {
    std::vector<Nap> naps;
    for (int i = 0; i < 16; ++i) naps.push_back(tasks.client->start().NapFor(1));
    for (auto& nap : naps) EXPECT_TRUE(nap.finish());
  };
  use_all();
  std::thread(use_all).join();
  use_all();
}

TEST(StartedCallsTimeout, are_aborted_at_the_finish_and_their_astacks_come_back) {
  LocalTasks tasks({.supply = lrpc::AStackSupply::fail, .call_timeout = 50ms});
  // A call that ends before the server has taken it up gives its A-stack back at once. Then the test makes another one.
  EXPECT_TRUE(eventually([&] {
    std::vector<Nap> naps;
    for (int i = 0; i < 16; ++i) naps.push_back(tasks.client->start().NapFor(kUntilLetGo));
    for (auto& nap : naps) {
      const Errc ended = nap.finish().code();
      EXPECT_TRUE(ended == Errc::call_aborted || ended == Errc::no_astack) << static_cast<int>(ended);
    }
    return tasks.service.staying == 16;
  }));
  EXPECT_EQ(tasks.client->start().NapFor(0).finish().code(), Errc::no_astack);
  tasks.service.let_all_go();
  EXPECT_TRUE(eventually([&] { return tasks.client->start().NapFor(0).finish().has_value(); }));
}

TEST(StartedCallsSupply, are_not_refused_because_another_thread_is_at_its_spares) {
  LocalTasks tasks({.supply = lrpc::AStackSupply::fail});
  auto& astacks = lrpc::detail::StubAccess::object(tasks.client->binding()).astacks(0);
  std::latch at_spares(1);
  std::latch go_on(1);
  std::thread owner([&] {
    {
      std::vector<Nap> naps;
      for (int i = 0; i < 16; ++i) naps.push_back(tasks.client->start().NapFor(1));
      for (auto& nap : naps) EXPECT_TRUE(nap.finish());
    }
    // As if the thread had lost its processor just there.
    auto& moving = astacks.own_lease().moving;
    moving.store(1);
    at_spares.count_down();
    go_on.wait();
    moving.store(0);
  });
  at_spares.wait();
  bool moving = false;
  EXPECT_EQ(astacks.take_any(moving), nullptr);
  EXPECT_TRUE(moving);
  {
    // A call that would wait fails because its time is over; a call that would not wait would be refused.
    const lrpc::CallScope over{-1s};
    EXPECT_EQ(tasks.client->start().NapFor(1).finish().code(), Errc::call_aborted);
    EXPECT_EQ(tasks.client->NapFor(1).code(), Errc::call_aborted);
  }
  go_on.count_down();
  EXPECT_EQ(tasks.client->start().NapFor(1).finish().code(), Errc::ok);
  owner.join();
}

class StartedCallsDeath : public testing::TestWithParam<std::tuple<Gate, bool>> {};

TEST_P(StartedCallsDeath, of_a_killed_server_all_end_with_call_failed) {
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER);
  auto client = Tasks::Client::import_over(std::move(server.socket),
                                           {.gate = std::get<0>(GetParam()), .watcher = std::get<1>(GetParam())});
  ASSERT_TRUE(client) << client.error().message();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(client->Null());
  std::vector<Nap> naps;
  for (int i = 0; i < 8; ++i) naps.push_back(client->start().NapFor(kForeverMs));
  auto dropped = std::make_unique<Nap>(client->start().NapFor(kForeverMs));
  std::this_thread::sleep_for(10ms);
  server.process.kill_and_wait();
  for (auto& nap : naps) EXPECT_EQ(nap.finish().code(), Errc::call_failed);
  dropped.reset();
  EXPECT_EQ(client->start().Null().finish().code(), Errc::binding_revoked);
}

INSTANTIATE_TEST_SUITE_P(gates, StartedCallsDeath,
                         testing::Combine(testing::Values(Gate::adaptive, Gate::exchange, Gate::handoff),
                                          testing::Bool()));

TEST(StartedCallsFork, of_the_parent_are_nothing_to_a_fork_child) {
  TasksProcess server = start_tasks_process(LRPC_TASKS_SERVER);
  auto client = Tasks::Client::import_over(std::move(server.socket));
  ASSERT_TRUE(client) << client.error().message();
  auto nap = client->start().NapFor(100);
  auto other = std::make_unique<Nap>(client->start().NapFor(100));
  const pid_t child = fork();
  if (child == 0) {
    other.reset();
    _exit(nap.ready() && nap.finish().code() == Errc::call_failed ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(nap.finish().value(), 100U);
  EXPECT_EQ(other->finish().value(), 100U);
}

TEST(StartedCallsFork, with_results_in_a_tail_end_there_too) {
  ConformanceService service;
  lrpc::Server server;
  auto client = bind_privately(server, service);
  ASSERT_TRUE(client) << client.error().message();
  std::vector<std::byte> room(100'000);
  lrpc::Buffer data(room);
  auto filled = client->start().Fill(100'000, 7, data);
  const pid_t child = fork();
  if (child == 0) _exit(filled.finish().code() == Errc::call_failed ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(filled.finish());
  EXPECT_EQ(data.size(), 100'000U);
}

}  // namespace
}  // namespace testing_lrpc
