// Deadlines: of a call, of a scope, and of the calls that a procedure makes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

#include "gates.h"
#include "inline_server.h"
#include "limits_service.h"
#include "lrpc/detail/shim/call/gates.h"

namespace testing_lrpc {
namespace {

using lrpc::CallScope;
using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Deadlines : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(client_.Null());  // lets the gate settle
  }
  /// Makes a call whose slot claims `left` ns, as ring() does, but without a deadline here. Returns its status.
  std::uint16_t call_with(std::uint64_t left, std::uint16_t number, std::string_view name) {
    EXPECT_EQ(Limits::kPdl.procedures[number].name, name);
    lrpc::client::BindingObject& object = lrpc::detail::StubAccess::object(client_.binding());
    lrpc::client::PendingCall call(object, Limits::kPdl.procedures[number].astack_class);
    EXPECT_TRUE(call.taken());
    const lrpc::shim::AStack& astack = call.placed();
    lrpc::shim::AStackHead& head = *astack.head;
    astack.limit->store(left);
    const auto generation = (lrpc::shim::load_word(head).bits() >> 8 & 0xff'ffff) + 1;
    const auto called = lrpc::shim::CallWord::called(generation, number, 0).with(lrpc::shim::CallWord::kLimited);
    (void)lrpc::shim::ring_handoff(head, called);
    lrpc::shim::futex_wake(head.word, lrpc::shim::Sleeper::estack);
    object.ring_bell();
    EXPECT_TRUE(eventually([&] { return lrpc::shim::load_word(head).returns(called); }));
    return lrpc::shim::load_word(head).status();
    // The A-stack stays in quarantine: its client does not know this generation.
  }

  /// The code with which `call` ends in a scope with this limit: a time point or a duration.
  template <class Limit, class Call>
  static Errc within(Limit limit, const Call& call) {
    const CallScope scope{limit};
    return call().code();
  }
  /// Calls that hold all A-stacks until the service releases them.
  static auto hold_all_astacks(LocalLimits& limits) {
    std::vector<decltype(limits.client->start().Stay())> all;
    for (int i = 0; i < 8; ++i) all.push_back(limits.client->start().Stay());
    EXPECT_TRUE(eventually([&] { return limits.service.holding == 8; }));
    return all;
  }

  LocalLimits limits_{{.gate = GetParam()}};
  LimitsService& service_ = limits_.service;
  Limits::Client& client_ = *limits_.client;
};

TEST_P(Deadlines, end_a_call_and_tell_its_procedure) {
  const auto began = Clock::now();
  {
    const CallScope scope{30ms};
    EXPECT_EQ(client_.Hold(kForeverMs).code(), Errc::call_aborted);
    EXPECT_TRUE(CallScope::over());
  }
  EXPECT_GE(Clock::now() - began, 30ms);
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
  limits_.until_it_begins(
      [&] { EXPECT_EQ(within(30ms, [&] { return client_.Hold(kForeverMs); }), Errc::call_aborted); },
      [&] { return service_.abandonments != 0; });
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
  EXPECT_TRUE(client_.Null());
}

TEST_P(Deadlines, end_a_call_wherever_it_is_executed) {
  for (int i = 0; i < 10; ++i) {
    for (int warm = 0; warm < 20; ++warm) ASSERT_TRUE(client_.Null());
    EXPECT_EQ(within(5ms, [&] { return client_.HoldAnywhere(kForeverMs); }), Errc::call_aborted);
  }
  EXPECT_TRUE(eventually([&] { return service_.holding == 0; }));
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
}

TEST_P(Deadlines, end_a_call_as_aborted_whose_procedure_gave_up_first) {
  // The procedure may see the end of its time before its caller does, and return at once.
  for (int i = 0; i < 30; ++i) EXPECT_EQ(within(2ms, [&] { return client_.Hold(kForeverMs); }), Errc::call_aborted);
}

TEST_P(Deadlines, keep_the_astack_from_everybody_until_the_server_lets_go) {
  limits_.until_it_begins([&] { EXPECT_EQ(within(30ms, [&] { return client_.Stay(); }), Errc::call_aborted); },
                          [&] { return service_.holding != 0; });
  ASSERT_EQ(service_.holding, 1U);
  // Calls continue on other A-stacks and on other threads of the server. This A-stack stays in quarantine.
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(client_.Null());
  EXPECT_EQ(limits_.in_quarantine(), 1U);
  EXPECT_EQ(service_.holding, 1U);
  service_.released = true;
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
}

TEST_P(Deadlines, that_are_over_let_no_call_begin) {
  const std::uint32_t before = service_.asked;
  const auto left = [&] { return client_.Left(); };
  EXPECT_EQ(within(Clock::now() - 1s, left), Errc::call_aborted);
  EXPECT_EQ(within(Clock::now() - 1s, [&] { return client_.start().Left().finish(); }), Errc::call_aborted);
  EXPECT_EQ(within(Clock::now() - 1s, [&] { return client_.Note(0); }), Errc::call_aborted);
  EXPECT_EQ(within(-5s, left), Errc::call_aborted);
  EXPECT_EQ(within(Clock::time_point::min(), left), Errc::call_aborted);
  EXPECT_EQ(service_.asked, before);
  ASSERT_TRUE(client_.Left());
  EXPECT_EQ(service_.asked, before + 1);
  EXPECT_EQ(limits_.in_quarantine(), 0U);
}

TEST_P(Deadlines, nest_and_the_earlier_one_holds) {
  EXPECT_FALSE(CallScope::remaining());
  {
    const CallScope outer{1h};
    {
      const CallScope inner{2h};
      EXPECT_LE(*CallScope::remaining(), 1h);
      EXPECT_LE(client_.Left()->nanoseconds, std::chrono::nanoseconds(1h).count());
    }
    {
      const CallScope inner{20ms};
      EXPECT_LE(*CallScope::remaining(), 20ms);
      EXPECT_EQ(client_.Hold(kForeverMs).code(), Errc::call_aborted);
    }
    EXPECT_GT(*CallScope::remaining(), 20ms);
    EXPECT_TRUE(client_.Null());
  }
  EXPECT_FALSE(CallScope::remaining());
}

TEST_P(Deadlines, are_seen_by_the_procedure_and_run_down) {
  EXPECT_FALSE(client_.Left()->limited);
  const CallScope scope{1h};
  std::int64_t before = std::chrono::nanoseconds(1h).count();
  for (int i = 0; i < 200; ++i) {
    const auto left = client_.Left();
    ASSERT_TRUE(left);
    ASSERT_TRUE(left->limited);
    ASSERT_LE(left->nanoseconds, before);
    ASSERT_GT(left->nanoseconds, 0);
    ASSERT_LT(left->later, left->nanoseconds);
    before = left->nanoseconds;
  }
}

TEST_P(Deadlines, so_far_away_that_no_clock_has_them_are_none_or_a_year) {
  {
    const CallScope scope{std::chrono::hours::max()};
    EXPECT_FALSE(client_.Left()->limited);
  }
  {
    const CallScope scope{Clock::time_point::max() - 1ns};
    const auto left = client_.Left();
    EXPECT_TRUE(left->limited);
    EXPECT_LE(left->nanoseconds, lrpc::shim::Deadline::kMost);
    EXPECT_GT(left->nanoseconds, 0);
  }
  const CallScope scope{Clock::time_point::max()};
  EXPECT_FALSE(client_.Left()->limited);
}

TEST_P(Deadlines, of_the_binding_are_seen_too_and_the_shorter_one_holds) {
  LocalLimits timed({.gate = GetParam(), .call_timeout = 1h});
  for (int i = 0; i < 300; ++i) {
    const auto left = timed.client->Left();
    ASSERT_TRUE(left && left->limited);
    ASSERT_LE(left->nanoseconds, std::chrono::nanoseconds(1h).count());
  }
  const auto started = timed.client->start().Left().finish();
  EXPECT_TRUE(started && started->limited);
  {
    const CallScope scope{30min};
    EXPECT_LE(timed.client->Left()->nanoseconds, std::chrono::nanoseconds(30min).count());
  }
  const CallScope scope{2h};
  const auto left = timed.client->Left();
  EXPECT_TRUE(left->limited);
  EXPECT_LE(left->nanoseconds, std::chrono::nanoseconds(1h).count());
}

TEST_P(Deadlines, stay_with_a_call_that_was_started_within_them) {
  auto held = [&] {
    const CallScope scope{30ms};
    return client_.start().Hold(kForeverMs);
  }();
  EXPECT_TRUE(held.wait_for(kPatience)) << "it is not to be waited for any longer";
  EXPECT_EQ(held.finish().code(), Errc::call_aborted);
  auto fine = [&] {
    const CallScope scope{1h};
    return client_.start().Left();
  }();
  const auto left = fine.finish();
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->limited);
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
  EXPECT_FALSE(client_.start().Left().finish()->limited) << "nothing is left on the A-stack";
}

TEST_P(Deadlines, of_the_binding_count_for_a_started_call_from_its_start) {
  LocalLimits timed({.gate = GetParam(), .call_timeout = 50ms});
  auto held = timed.client->start().Stay();
  EXPECT_TRUE(held.wait_for(kPatience)) << "it is not to be waited for any longer";
  EXPECT_TRUE(held.ready());
  EXPECT_EQ(held.finish().code(), Errc::call_aborted);
}

TEST_P(Deadlines, of_the_binding_are_told_by_a_completion_queue) {
  LocalLimits timed({.gate = GetParam(), .call_timeout = 50ms});
  const auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  auto held = timed.client->start().Stay();
  Errc ended = Errc::ok;
  ASSERT_TRUE((*queue)->watch(held, [&] { ended = held.finish().code(); }));
  EXPECT_EQ((*queue)->wait(kPatience), 1U);
  EXPECT_EQ(ended, Errc::call_aborted);
}

TEST_P(Deadlines, hold_for_who_finishes_a_call_too) {
  auto held = client_.start().Hold(kForeverMs);
  const CallScope scope{30ms};
  EXPECT_FALSE(held.wait_for(kPatience)) << "the call goes on";
  EXPECT_EQ(held.finish().code(), Errc::call_aborted);
}

TEST_P(Deadlines, let_a_result_be_taken_that_came_in_time) {
  auto sum = [&] {
    const CallScope scope{1h};
    return client_.start().Once(7);
  }();
  ASSERT_TRUE(sum.wait_for(kPatience));
  const CallScope scope{Clock::now()};
  EXPECT_EQ(sum.finish().value(), 7U) << "it has returned: nothing has to be waited for";
}

TEST_P(Deadlines, end_the_wait_for_an_astack) {
  auto all = hold_all_astacks(limits_);
  const auto began = Clock::now();
  {
    const CallScope scope{30ms};
    EXPECT_EQ(client_.Hold(1).code(), Errc::call_aborted);
    EXPECT_EQ(client_.start().Hold(1).finish().code(), Errc::call_aborted);
  }
  EXPECT_GE(Clock::now() - began, 30ms);
  service_.released = true;
  for (auto& one : all) EXPECT_TRUE(one.finish());
}

TEST_P(Deadlines, in_a_one_way_call_run_down_at_the_server) {
  ASSERT_TRUE(client_.Note(0));
  ASSERT_TRUE(eventually([&] { return service_.noted == 1; }));
  EXPECT_EQ(service_.last_left, -1);
  // On a slow machine the time may be over before the call is made or served: then try again.
  for (bool in_time = false; !in_time;) {
    const std::uint32_t before = service_.noted;
    {
      const CallScope scope{200ms};
      if (!client_.Note(kForeverMs)) continue;
      in_time = *CallScope::remaining() > 0ns;  // no call waits for it
    }
    ASSERT_TRUE(eventually([&] { return service_.noted == before + 1; })) << "the procedure hears of its end";
    EXPECT_EQ(service_.abandonments, before);
    in_time = in_time && service_.last_left > 0;
  }
  EXPECT_LE(service_.last_left, std::chrono::nanoseconds(200ms).count());
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
}

TEST_P(Deadlines, pass_on_to_the_server_behind_a_server) {
  LocalLimits last({.gate = GetParam()});
  service_.behind = last.client.get();
  EXPECT_FALSE(client_.LeftBehind(false)->limited);
  {
    const CallScope scope{1h};
    const std::int64_t here = CallScope::remaining()->count();
    const auto behind = client_.LeftBehind(false);
    ASSERT_TRUE(behind && behind->limited);
    EXPECT_GT(behind->nanoseconds, 0);
    EXPECT_LT(behind->nanoseconds, here);
    EXPECT_FALSE(client_.LeftBehind(true)->limited) << "a fresh scope has none of it";
    EXPECT_EQ(client_.Throw().code(), Errc::exception_escaped);
  }
  EXPECT_FALSE(client_.LeftBehind(false)->limited) << "the server's threads have put it back";
  limits_.until_it_begins(
      [&] {
        service_.behind_ended = -1;  // set by an earlier attempt; no attempt is running now
        EXPECT_EQ(within(50ms, [&] { return client_.HoldBehind(kForeverMs); }), Errc::call_aborted);
      },
      [&] { return last.service.abandonments != 0; });
  EXPECT_TRUE(eventually([&] { return service_.behind_ended == static_cast<int>(Errc::call_aborted); }));
  EXPECT_TRUE(eventually(
      [&] { return limits_.in_quarantine() == 0 && last.in_quarantine() == 0 && service_.holding_behind == 0; }));
}

TEST_P(Deadlines, of_the_caller_end_the_wait_for_an_astack_of_the_server_behind_it) {
  LocalLimits last({.gate = GetParam()});
  service_.behind = last.client.get();
  auto all = hold_all_astacks(last);
  EXPECT_TRUE(eventually([&] {  // repeated if the call ended before its procedure had begun
    EXPECT_EQ(within(50ms, [&] { return client_.HoldBehind(1); }), Errc::call_aborted);
    return service_.behind_ended == static_cast<int>(Errc::call_aborted);
  }));
  EXPECT_EQ(last.service.holding, 8U) << "nothing was called";
  last.service.released = true;
  for (auto& one : all) EXPECT_TRUE(one.finish());
  // The counts show that already, but ThreadSanitizer does not treat calls as synchronisation.
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0 && service_.holding_behind == 0; }))
      << "no procedure uses the server behind";
}

TEST_P(Deadlines, of_the_caller_that_are_over_let_its_procedure_call_nobody_and_say_so) {
  LocalLimits last({.gate = GetParam()});
  service_.behind = last.client.get();
  const std::uint16_t status = call_with(1, 8, "HoldBehind");
  EXPECT_EQ(service_.behind_ended, static_cast<int>(Errc::call_aborted));
  EXPECT_EQ(last.service.holding + last.service.abandonments, 0U) << "nothing was called";
  EXPECT_EQ(lrpc::client::Call::failure(status), Errc::call_aborted);
}

TEST_P(Deadlines, that_a_caller_lies_about_harm_nobody) {
  for (const std::uint64_t lie :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63, ~std::uint64_t{0},
        static_cast<std::uint64_t>(lrpc::shim::Deadline::kMost) + 1,
        static_cast<std::uint64_t>(lrpc::shim::Deadline::kNever), std::uint64_t{1'000'000'000}}) {
    service_.last_left = -2;
    EXPECT_EQ(call_with(lie, 3, "Left"), 0) << lie;
    EXPECT_GE(service_.last_left, 0) << lie;
    EXPECT_LE(service_.last_left, lrpc::shim::Deadline::kMost) << lie;
    EXPECT_TRUE(lie >= 2 || service_.last_left == 0) << lie;
  }
  EXPECT_FALSE(client_.Left()->limited);
}

TEST_P(Deadlines, are_seen_by_a_completion_queue) {
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  auto held = [&] {
    const CallScope scope{50ms};
    return client_.start().Hold(kForeverMs);
  }();
  ASSERT_TRUE((*queue)->watch(held));
  std::size_t ran = 0;
  while (ran == 0) ran = (*queue)->wait(kPatience);
  EXPECT_EQ(ran, 1U);
  EXPECT_EQ(held.finish().code(), Errc::call_aborted);
}

TEST_P(Deadlines, do_not_hide_that_a_client_has_died) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer takes threads that a child of fork starts for those of its parent";
#endif
  auto ends = lrpc::shim::make_socket_pair();
  ASSERT_TRUE(ends);
  const pid_t child = fork();
  if (child == 0) {
    auto client = Limits::Client::import_over(std::move(ends->second), {.gate = GetParam()});
    const CallScope scope{1h};
    if (client) (void)client->Hold(kForeverMs);
    _exit(1);
  }
  LocalLimits other;  // only its service is used, for the child
  ASSERT_TRUE(Limits::serve_over(other.server, std::move(ends->first), other.service));
  EXPECT_TRUE(eventually([&] { return other.service.holding == 1; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(eventually([&] { return other.service.abandonments == 1; }));
}

INSTANTIATE_TEST_SUITE_P(gates, Deadlines, testing::ValuesIn(kRepeatedGates), gate_name);

TEST(DeadlinesWithinOneThread, hold_before_a_call_and_are_seen_in_it) {
  LocalLimits limits({.gate = Gate::none});
  const InlineServer here(limits.server, limits.client->binding());
  {
    const CallScope scope{1h};
    EXPECT_TRUE(limits.client->Left()->limited);
    EXPECT_TRUE(limits.client->start().Left().finish()->limited);
    EXPECT_TRUE(CallScope::remaining()) << "the scope is there again";
  }
  EXPECT_FALSE(limits.client->Left()->limited);
  const CallScope scope{0s};
  EXPECT_EQ(limits.client->Left().code(), Errc::call_aborted);
}

}  // namespace
}  // namespace testing_lrpc
