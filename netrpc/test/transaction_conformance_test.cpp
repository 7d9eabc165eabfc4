// One suite for what a call promises, run over every composition that gives the transaction service: M.RPC of the paper
// on ETH, IP and VIP; its L.RPC (SELECT-CHANNEL-FRAGMENT); its reordered graph with VIPsize (Figure 3); and a
// composition of micro-protocols in place of CHANNEL.
#include "transaction_conformance.h"

#include <memory>
#include <string>
#include <vector>

#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargest = 16000;
constexpr const char* kRepeats = "REQUEST_REPLY sends until it is answered or gives up, and promises no more";

const std::vector<NamedStack>& stacks() {
  static const std::vector<NamedStack> all = [] {
    std::vector<NamedStack> some = storm_stacks();
    some.push_back({"mrpc-eth", "eth = ETH; mrpc = M_RPC over eth;"});
    some.push_back(
        {"select-channel-fragment-eth",
         "eth = ETH; fragment = FRAGMENT over eth; channel = CHANNEL over fragment; select = SELECT over channel;"});
    some.push_back({kComposed, R"(
ip       = IP;
fragment = FRAGMENT over ip;
calls    = COMPOSITE { GRPC; SYNC; ONE_ACCEPT; NUMBER; UNIQUE; ACK; STILL_WORKING; } over fragment;
select   = SELECT over calls;
)"});
    return some;
  }();
  return all;
}

TEST_P(TransactionConformanceTest, requests_and_replies_of_every_size_arrive_unchanged_and_are_executed_once) {
  int calls = 0;
  for (const std::size_t size :
       {0U, 1U, 20U, 46U, 500U, 1400U, 1440U, 1460U, 1480U, 1500U, 2000U, 2960U, 8192U, 15999U, 16000U}) {
    std::string reply;
    record.echo = true;
    ASSERT_EQ(call(pattern(size), reply), Errc::ok) << size;
    EXPECT_EQ(reply, pattern(size)) << size;
    record.echo = false;
    record.answer_size = kLargest - size;
    ASSERT_EQ(call(pattern(size), reply), Errc::ok) << size;
    EXPECT_EQ(reply, pattern(kLargest - size)) << size;
    calls += 2;
    EXPECT_EQ(record.executed, calls);
  }
}

TEST_P(TransactionConformanceTest, the_session_says_what_it_takes_and_takes_no_more) {
  const std::size_t maximum = test::asked<control::MaximumMessage>(*sessions[1]).size;
  EXPECT_GE(maximum, kLargest);
  std::string reply;
  EXPECT_EQ(call(pattern(maximum), reply), Errc::ok);
  EXPECT_EQ(reply, pattern(maximum));
  EXPECT_EQ(call(pattern(maximum + 1), reply), Errc::message_too_long);
  EXPECT_EQ(record.executed, 1);
}

TEST_P(TransactionConformanceTest, a_command_that_nobody_serves_is_bad_procedure) {
  {
    const Shepherd inside(net[1].monitor());
    sessions[1] = open(1, 99);
  }
  std::string reply;
  EXPECT_EQ(call("x", reply), is_composed() ? Errc::call_failed : Errc::bad_procedure);
  EXPECT_EQ(record.executed, 0);
}

TEST_P(TransactionConformanceTest, a_refused_request_ends_with_an_error_and_the_next_call_is_not_disturbed) {
  std::string reply;
  record.refuses = true;
  EXPECT_NE(call("refused", reply), Errc::ok);
  record.refuses = false;
  EXPECT_EQ(call("next", reply), Errc::ok);
  EXPECT_EQ(record.executions, (std::map<std::string, int>{{"next", 1}, {"refused", 1}}));
}

TEST_P(TransactionConformanceTest, a_timeout_ends_the_call_when_it_said_and_the_next_call_is_not_disturbed) {
  std::string reply;
  ASSERT_EQ(call("warm", reply), Errc::ok);
  record.slow = true;
  const Time before = net.world.now();
  EXPECT_EQ(call("slow", reply, 250ms), Errc::call_aborted);
  EXPECT_EQ(net.world.now() - before, 250ms);
  record.slow = false;
  EXPECT_EQ(call("next", reply, 1s), Errc::ok);
  EXPECT_EQ(reply, "next");
  answer_pending();
  EXPECT_EQ(call("third", reply, 1s), Errc::ok);
  EXPECT_EQ(reply, "third");
  if (!repeats_calls(GetParam().text)) {
    EXPECT_EQ(record.executions["slow"], 1);
  }
}

TEST_P(TransactionConformanceTest, a_call_without_any_time_is_aborted_and_nothing_is_sent) {
  std::string reply;
  ASSERT_EQ(call("warm", reply), Errc::ok);
  const std::uint64_t sent = net.world.counters().sent;
  for (const Duration none : {Duration(kDoNotWait), Duration(-1)})
    EXPECT_EQ(call("never", reply, none), Errc::call_aborted);
  EXPECT_EQ(net.world.counters().sent, sent);
  EXPECT_EQ(record.executions["never"], 0);
  EXPECT_EQ(call("next", reply), Errc::ok);
}

TEST_P(TransactionConformanceTest, a_slow_server_is_waited_for_however_long_it_takes) {
  if (repeats_calls(GetParam().text)) GTEST_SKIP() << kRepeats;
  record.slow = true;
  TestCall small, large;
  start(small, "small");
  start(large, pattern(kLargest));
  net.world.run_for(2min);
  EXPECT_FALSE(small.done());
  EXPECT_FALSE(large.done());
  answer_pending();
  net.world.run_for(1s);
  EXPECT_EQ(small.outcome, Errc::ok);
  EXPECT_EQ(large.outcome, Errc::ok);
  EXPECT_EQ(small.reply, "late");
  EXPECT_EQ(record.executed, 2);
}

TEST_P(TransactionConformanceTest, a_server_that_crashes_while_it_executes_is_a_failed_call_rebooted_or_not) {
  if (repeats_calls(GetParam().text)) GTEST_SKIP() << kRepeats;
  record.slow = true;
  for (const bool reboots : {false, true}) {
    TestCall one;
    start(one, reboots ? "reboots" : "stays down");
    net.world.run_for(100ms);
    crash(kServer);
    if (reboots) net[kServer].boot();
    EXPECT_TRUE(net.world.run_until([&] { return one.done(); }, 1min));
    EXPECT_EQ(one.outcome, Errc::call_failed);
    if (!reboots) net[kServer].boot();
    EXPECT_EQ(record.executions[reboots ? "reboots" : "stays down"], 1);
    // A client that has not heard of the new life may fail one more call.
    record.slow = false;
    std::string reply;
    const bool knew = call("next life", reply) == Errc::ok;
    EXPECT_TRUE(knew || call("next life", reply) == Errc::ok);
    record.slow = true;
  }
}

TEST_P(TransactionConformanceTest,
       a_server_that_rebooted_between_calls_never_executes_one_twice_and_is_soon_called_again) {
  if (repeats_calls(GetParam().text)) GTEST_SKIP() << kRepeats;
  std::string reply;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(call("a" + std::to_string(i), reply), Errc::ok);
    crash(kServer);
    net[kServer].boot();
    const Errc first = call("b" + std::to_string(i), reply);
    EXPECT_TRUE(first == Errc::ok || first == Errc::call_failed);
    EXPECT_EQ(call("c" + std::to_string(i), reply), Errc::ok);
  }
  for (const auto& [request, times] : record.executions) EXPECT_EQ(times, 1) << request;
}

TEST_P(TransactionConformanceTest, a_host_that_does_not_answer_is_unreachable_and_nothing_was_executed) {
  if (repeats_calls(GetParam().text)) GTEST_SKIP() << kRepeats;
  crash(kServer);
  std::string reply;
  EXPECT_EQ(call("x", reply), is_composed() ? Errc::call_failed : Errc::host_unreachable);
  net[kServer].boot();
  EXPECT_EQ(call("y", reply), Errc::ok);
  EXPECT_EQ(record.executions.count("x"), 0U);
}

TEST_P(TransactionConformanceTest, a_client_that_reboots_calls_on_in_its_new_life) {
  record.slow = true;
  auto lost = std::make_unique<TestCall>();
  start(*lost, "lost");
  net.world.run_for(10ms);
  crash(1);
  net[1].boot();
  record.slow = false;
  std::string reply;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call(std::to_string(i), reply), Errc::ok);
  answer_pending();
  net.world.run_for(1s);
  EXPECT_EQ(call("after", reply), Errc::ok);
  EXPECT_EQ(reply, "after");
  EXPECT_EQ(record.executed, 22);
}

TEST_P(TransactionConformanceTest, more_calls_at_once_than_there_are_channels_are_all_answered) {
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 100; ++i) start(*calls.emplace_back(std::make_unique<TestCall>()), std::to_string(i));
  net.world.run_for(1s);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(calls[static_cast<std::size_t>(i)]->outcome, Errc::ok);
    EXPECT_EQ(calls[static_cast<std::size_t>(i)]->reply, std::to_string(i));
  }
  EXPECT_EQ(record.executed, 100);
}

TEST_P(TransactionConformanceTest, a_cancelled_call_is_never_completed) {
  record.slow = true;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 12; ++i) start(*calls.emplace_back(std::make_unique<TestCall>()), std::to_string(i));
  net.world.run_for(5ms);
  {
    const Shepherd inside(net[1].monitor());
    for (const auto& one : calls) sessions[1]->cancel(*one);
  }
  record.slow = false;
  answer_pending();
  std::string reply;
  EXPECT_EQ(call("next", reply), Errc::ok);
  EXPECT_EQ(reply, "next");
  net.world.run_for(10s);
  for (const auto& one : calls) EXPECT_EQ(one->completions, 0);
}

TEST_P(TransactionConformanceTest, a_lossy_doubling_reordering_wire_delays_calls_and_repeats_none) {
  net.world.set_links({.latency = 20us, .jitter = 50us, .loss = 0.05, .duplicate = 0.05, .reorder = 0.1});
  for (int i = 0; i < 300; ++i) {
    const std::string request = std::to_string(i) + pattern(i % 3 == 0 ? 12000U : static_cast<std::size_t>(i));
    std::string reply;
    ASSERT_EQ(call(request, reply), Errc::ok) << i;
    ASSERT_EQ(reply, request);
  }
  net.world.run_for(10s);
  if (!repeats_calls(GetParam().text)) {
    EXPECT_EQ(record.executed, 300);
  }
}

TEST_P(TransactionConformanceTest, two_clients_do_not_get_each_others_replies) {
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 50; ++i)
    for (const std::size_t from : {1U, 2U})
      start(*calls.emplace_back(std::make_unique<TestCall>()),
            std::to_string(from) + pattern(static_cast<std::size_t>(i) * 100), kNoLimit, from);
  net.world.run_for(5s);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i]->outcome, Errc::ok);
    EXPECT_EQ(calls[i]->reply, std::to_string(i % 2 + 1) + pattern(i / 2 * 100));
  }
}

TEST_P(TransactionConformanceTest, when_all_is_quiet_no_session_no_record_and_no_message_is_left) {
  std::string reply;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(call(pattern(16000), reply), Errc::ok);
    EXPECT_EQ(call(pattern(16000), reply, kNoLimit, 2), Errc::ok);
  }
  let_go(1);
  let_go(2);
  for (int round = 0; round < 2; ++round) {
    net.world.run_for(10min);
    for (std::size_t i = 0; i < 3; ++i) {
      const Shepherd inside(net[i].monitor());
      for (Protocol* protocol : all[i]) {
        control::Request drop = control::DropIdle{};
        (void)protocol->control(drop);
      }
    }
  }
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(net[i].pool().in_use(), 0U) << "host " << i;
    for (Protocol* protocol : all[i]) {
      const auto left = test::asked<control::Statistics>(*protocol);
      EXPECT_EQ(left.sessions, 0U) << protocol->name() << " of host " << i;
      EXPECT_EQ(left.state, 0U) << protocol->name() << " of host " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stacks, TransactionConformanceTest, testing::ValuesIn(stacks()), [](const auto& stack) {
  std::string name(stack.param.name);
  for (char& letter : name)
    if (letter == '-') letter = '_';
  return name;
});

}  // namespace
}  // namespace lrpc::netrpc::test
