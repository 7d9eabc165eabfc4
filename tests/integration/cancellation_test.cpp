// Cancellation: another thread cancels calls before they start, while they run, after them, and as they return.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "gates.h"
#include "length.h"
#include "limits_service.h"

namespace testing_lrpc {
namespace {

using lrpc::CallScope;
using lrpc::Cancellation;
using lrpc::Errc;
using lrpc::Gate;
using namespace std::chrono_literals;

class Cancelled : public testing::TestWithParam<Gate> {
 protected:
  void SetUp() override {
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(client_.Null());  // lets the gate settle
  }
  [[nodiscard]] bool held() const {
    return eventually([&] { return limits_.service.holding != 0; });
  }
  LocalLimits limits_{{.gate = GetParam()}};
  LimitsService& service_ = limits_.service;
  Limits::Client& client_ = *limits_.client;
};

TEST_P(Cancelled, calls_say_so_and_those_past_their_deadline_say_that) {
  const Cancellation cancellation;
  {
    const CallScope scope(0ms, cancellation);
    EXPECT_EQ(client_.Left().code(), Errc::call_aborted) << "the deadline has passed, the cancellation has not come";
    EXPECT_EQ(client_.start().Left().finish().code(), Errc::call_aborted);
    cancellation.cancel();
    EXPECT_EQ(client_.Left().code(), Errc::call_cancelled) << "of both, the cancellation";
    EXPECT_EQ(client_.start().Left().finish().code(), Errc::call_cancelled);
    EXPECT_NE(client_.Left().error().message(), lrpc::describe(Errc::call_aborted));
  }
}

TEST_P(Cancelled, calls_are_not_made_and_those_after_the_scope_are) {
  const Cancellation cancellation;
  cancellation.cancel();
  {
    const CallScope scope(cancellation);
    EXPECT_TRUE(CallScope::over());
    EXPECT_EQ(client_.Left().code(), Errc::call_cancelled);
    EXPECT_EQ(client_.start().Left().finish().code(), Errc::call_cancelled);
    EXPECT_EQ(client_.Note(0).code(), Errc::call_cancelled);
    {
      const CallScope inner{1h};
      EXPECT_EQ(client_.Left().code(), Errc::call_cancelled) << "an inner scope does not get out of it";
    }
    const CallScope fresh(lrpc::fresh);
    EXPECT_TRUE(client_.Null()) << "a fresh one does";
  }
  EXPECT_EQ(service_.asked, 0U);
  EXPECT_TRUE(client_.Left());
  EXPECT_EQ(limits_.in_quarantine(), 0U);
}

TEST_P(Cancelled, calls_that_are_under_way_end_and_their_procedures_hear_of_it) {
  const Cancellation cancellation;
  std::thread other([&] {
    EXPECT_TRUE(held());
    cancellation.cancel();
  });
  {
    const CallScope scope(cancellation);
    EXPECT_EQ(client_.Hold(kForeverMs).code(), Errc::call_cancelled);
    EXPECT_EQ(client_.Left().code(), Errc::call_cancelled) << "and so do later ones";
  }
  other.join();
  EXPECT_TRUE(eventually([&] { return service_.abandonments == 1; }));
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
  EXPECT_TRUE(client_.Null());
}

TEST_P(Cancelled, astacks_stay_where_they_are_until_the_server_lets_go) {
  const Cancellation cancellation;
  std::thread other([&] {
    EXPECT_TRUE(held());
    cancellation.cancel();
  });
  {
    const CallScope scope(cancellation);
    EXPECT_EQ(client_.Stay().code(), Errc::call_cancelled);
  }
  other.join();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(client_.Null());
  EXPECT_EQ(limits_.in_quarantine(), 1U);
  EXPECT_EQ(service_.holding, 1U);
  service_.released = true;
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
}

TEST_P(Cancelled, results_that_have_come_are_kept) {
  const Cancellation cancellation;
  const CallScope scope(cancellation);
  EXPECT_EQ(client_.Once(3).value(), 3U);
  auto once = client_.start().Once(4);
  ASSERT_TRUE(once.wait_for(kPatience));
  cancellation.cancel();
  cancellation.cancel();
  EXPECT_EQ(once.finish().value(), 4U);
  EXPECT_EQ(client_.Once(5).code(), Errc::call_cancelled);
  EXPECT_EQ(service_.times[5], 0);
}

TEST_P(Cancelled, waits_for_an_astack_end) {
  std::vector<decltype(client_.start().Stay())> all;
  for (int i = 0; i < 8; ++i) all.push_back(client_.start().Stay());
  ASSERT_TRUE(eventually([&] { return service_.holding == 8; }));
  const Cancellation cancellation;
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    cancellation.cancel();
  });
  {
    const CallScope scope(cancellation);
    EXPECT_EQ(client_.Hold(1).code(), Errc::call_cancelled);
  }
  other.join();
  service_.released = true;
  for (auto& one : all) EXPECT_TRUE(one.finish());
}

TEST_P(Cancelled, started_calls_need_not_be_waited_for) {
  const Cancellation cancellation;
  auto first = [&] {
    const CallScope scope(cancellation);
    return client_.start().Hold(kForeverMs);
  }();
  auto second = [&] {
    const CallScope scope(1h, cancellation);
    return client_.start().Hold(kForeverMs);
  }();
  auto third = client_.start().Stay();
  EXPECT_FALSE(first.ready());
  std::thread other([&] {
    EXPECT_TRUE(eventually([&] { return service_.holding == 3; }));
    cancellation.cancel();
  });
  EXPECT_EQ(first.finish().code(), Errc::call_cancelled);
  EXPECT_TRUE(second.wait_for(0ms));
  EXPECT_EQ(second.finish().code(), Errc::call_cancelled);
  EXPECT_FALSE(third.ready());
  service_.released = true;
  EXPECT_TRUE(third.finish()) << "it was started outside";
  other.join();
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
}

TEST_P(Cancelled, calls_wake_their_completion_queue) {
  auto queue = lrpc::CompletionQueue::create();
  ASSERT_TRUE(queue);
  const Cancellation cancellation;
  auto call = [&] {
    const CallScope scope(cancellation);
    return client_.start().Hold(kForeverMs);
  }();
  auto lasting = client_.start().Hold(kForeverMs);
  ASSERT_TRUE((*queue)->watch(call));
  ASSERT_TRUE((*queue)->watch(lasting));
  ASSERT_TRUE(eventually([&] { return service_.holding == 2; }));
  EXPECT_EQ((*queue)->run(), 0U);
  cancellation.cancel();
  std::size_t ran = 0;
  while (ran == 0) ran = (*queue)->wait(kPatience);
  EXPECT_EQ(ran, 1U);
  EXPECT_EQ(call.finish().code(), Errc::call_cancelled);
  EXPECT_FALSE(lasting.ready());
}

TEST_P(Cancelled, scopes_nest_as_deep_as_one_likes) {
  // Deeper than the number of words that one sleep can wait for.
  const std::function<Errc(int, const Cancellation&)> nest = [&](int depth, const Cancellation& outermost) {
    const CallScope scope(depth == 0 ? outermost : Cancellation());
    return depth < 40 ? nest(depth + 1, outermost) : client_.Hold(kForeverMs).code();
  };
  const Cancellation cancellation;
  std::thread other([&] {
    EXPECT_TRUE(held());
    cancellation.cancel();
  });
  EXPECT_EQ(nest(0, cancellation), Errc::call_cancelled);
  other.join();
}

TEST_P(Cancelled, calls_in_a_race_with_their_return_end_in_one_way_or_the_other) {
  constexpr int kThreads = 4;
  constexpr std::uint32_t kRounds = 150;
  std::atomic<std::uint32_t> returned{0};
  std::atomic<std::uint32_t> cancelled{0};
  const std::uint64_t seed = test_seed();
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<std::uint32_t>(seed + thread));
      std::uint32_t number = thread * (LimitsService::kNumbers / kThreads);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        const Cancellation cancellation;
        std::atomic<bool> begun{false};
        const auto pause = std::chrono::microseconds(random() % 200);
        std::thread other([&] {
          while (!begun) std::this_thread::yield();
          std::this_thread::sleep_for(pause);
          cancellation.cancel();
        });
        {
          const CallScope scope(cancellation);
          begun = true;
          for (int calls = 0;; ++calls, ++number) {
            // The supply of numbers is limited.
            while (calls >= 300 && !cancellation.cancelled()) std::this_thread::yield();
            const bool started = random() % 3 == 0;
            const auto once = started ? client_.start().Once(number).finish() : client_.Once(number);
            const int times = service_.times[number];
            if (once) {
              EXPECT_EQ(*once, number);
              EXPECT_EQ(times, 1);
              ++returned;
              continue;
            }
            EXPECT_EQ(once.code(), Errc::call_cancelled);
            ++cancelled;
            ++number;
            break;
          }
        }
        other.join();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cancelled, kThreads * kRounds) << "each cancellation ended exactly one call";
  EXPECT_TRUE(eventually([&] { return limits_.in_quarantine() == 0; }));
  EXPECT_TRUE(std::ranges::all_of(service_.times, [](const auto& times) { return times <= 1; }));
  // All A-stacks are available again.
  std::vector<decltype(client_.start().Once(0))> all;
  for (std::uint32_t i = 0; i < 8; ++i) all.push_back(client_.start().Once(LimitsService::kNumbers - 1 - i));
  for (auto& one : all) EXPECT_TRUE(one.finish());
}

TEST_P(Cancelled, one_cancellation_ends_the_calls_of_many_threads) {
  const Cancellation cancellation;
  std::atomic<int> cancelled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const CallScope scope(cancellation);
      cancelled += client_.Hold(kForeverMs).code() == Errc::call_cancelled;
    });
  }
  EXPECT_TRUE(eventually([&] { return service_.holding == 6; }));
  cancellation.cancel();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cancelled, 6);
  EXPECT_TRUE(eventually([&] { return service_.abandonments == 6 && limits_.in_quarantine() == 0; }));
}

TEST_P(Cancelled, deadlines_and_cancellations_in_one_storm_leave_nothing_behind) {
  std::atomic<int> wrong{0};
  std::atomic<std::uint32_t> next{0};
  const std::uint64_t seed = test_seed();
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::minstd_rand random(static_cast<std::uint32_t>(seed + thread));
      for (int round = rounds(80); round > 0; --round) {
        const Cancellation cancellation;
        const CallScope scope(std::chrono::microseconds(random() % 300), cancellation);
        std::thread other;
        if (random() % 8 == 0) other = std::thread([cancellation] { cancellation.cancel(); });
        for (int i = 0; i < 20; ++i) {
          const std::uint32_t number = next++ % LimitsService::kNumbers;
          const auto once = client_.Once(number);
          if (once ? *once != number : once.code() != Errc::call_aborted && once.code() != Errc::call_cancelled)
            ++wrong;
        }
        if (random() % 4 == 0 && client_.Hold(20).code() == Errc::call_failed) ++wrong;
        if (other.joinable()) other.join();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(eventually([&] { return service_.holding == 0 && limits_.in_quarantine() == 0; }));
  EXPECT_FALSE(CallScope::remaining());
}

INSTANTIATE_TEST_SUITE_P(gates, Cancelled, testing::ValuesIn(kRepeatedGates), gate_name);

}  // namespace
}  // namespace testing_lrpc
