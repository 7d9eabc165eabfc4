// How and where an E-stack waits, under a simulated clock.
#include "estacks/estack_policy.h"

#include <gtest/gtest.h>

#include "at.h"

namespace lrpc::server {
namespace {

using Move = EStackPolicy::Move;

/// Makes `count` calls from a processor. Returns the move after the last one.
Move calls(EStackPolicy& policy, std::uint16_t processor, unsigned count, std::uint64_t us, bool yields = true) {
  Move move = Move::stay;
  for (unsigned i = 0; i < count; ++i) {
    policy.called_from(processor);
    move = policy.move(processor, yields, at(us));
  }
  return move;
}

TEST(EStackPolicy, binds_itself_to_its_caller_after_some_calls_from_one_processor) {
  EStackPolicy policy;
  EXPECT_EQ(calls(policy, 3, EStackPolicy::kCallsBeforeMove - 1, 5'000), Move::stay);
  EXPECT_EQ(calls(policy, 3, 1, 5'000), Move::bind);
  policy.bound_to(3, at(5'000));
  EXPECT_EQ(calls(policy, 3, 10, 5'000), Move::stay);
  EXPECT_TRUE(policy.hands_over(3, true));
  EXPECT_FALSE(policy.hands_over(3, false));
  EXPECT_FALSE(policy.hands_over(4, true));
}

TEST(EStackPolicy, does_not_follow_who_would_not_yield_and_leaves_him) {
  EStackPolicy policy;
  EXPECT_EQ(calls(policy, 3, 100, 5'000, false), Move::stay);
  policy.bound_to(3, at(5'000));
  EXPECT_EQ(calls(policy, 3, 1, 5'000, false), Move::unbind);
  policy.unbound(at(5'000));
  EXPECT_FALSE(policy.bound());
  EXPECT_FALSE(policy.hands_over(3, true));
}

TEST(EStackPolicy, is_bound_to_no_processor_that_its_caller_has_left) {
  EStackPolicy policy;
  policy.bound_to(3, at(5'000));
  EXPECT_EQ(calls(policy, 4, EStackPolicy::kCallsBeforeMove - 1, 5'100), Move::stay);
  EXPECT_EQ(calls(policy, 4, 1, 5'100), Move::unbind) << "too soon to move again";
  policy.unbound(at(5'100));
  EXPECT_EQ(calls(policy, 4, 1, 5'200), Move::stay);
  EXPECT_EQ(calls(policy, 4, 1, 7'200), Move::bind);
}

TEST(EStackPolicy, is_not_bound_for_ever_where_none_of_several_callers_is) {
  EStackPolicy policy;
  policy.bound_to(3, at(5'000));
  Move move = Move::stay;
  for (std::uint16_t i = 0; i < EStackPolicy::kCallsElsewhere; ++i) {
    EXPECT_EQ(move, Move::stay) << i;
    move = calls(policy, 4 + i % 2, 1, 9'000);
  }
  EXPECT_EQ(move, Move::unbind);
}

TEST(EStackPolicy, follows_a_caller_that_moves_about_ever_more_rarely) {
  EStackPolicy policy;
  unsigned moves = 0;
  std::uint16_t caller = 0;
  for (std::uint64_t us = 5'000; us < 1'005'000; us += 500, caller ^= 1) {
    const Move move = calls(policy, caller, 20, us);
    if (move == Move::unbind) policy.unbound(at(us));
    if (move != Move::bind) continue;
    policy.bound_to(caller, at(us));
    ++moves;
  }
  EXPECT_GE(moves, 15U);
  EXPECT_LE(moves, 30U) << "seven while the interval doubles, then one each 64 ms";
}

TEST(EStackPolicy, an_astack_is_hot_after_calls_soon_after_one_another) {
  EStackPolicy policy;
  EXPECT_FALSE(policy.served(1'000, 200));
  EXPECT_FALSE(policy.served(199, 200));
  EXPECT_TRUE(policy.served(199, 200));
  EXPECT_FALSE(policy.served(200, 200));
}

/// Makes calls from `us` on, every `takes`, so that the E-stack never sleeps. Returns when it shall yield.
std::uint64_t busy_until_yield(EStackPolicy& policy, std::uint64_t us, std::uint64_t takes = 1) {
  while (!policy.yield_due(at(us))) {
    policy.parked(0);  // the next call was there before it slept
    us += takes;
  }
  return us;
}

TEST(EStackPolicy, offers_its_processor_while_calls_come_one_after_the_other) {
  EStackPolicy policy;
  EXPECT_EQ(busy_until_yield(policy, 1'000), 1'000 + EStackPolicy::kYieldUs);
  policy.yielded(0, at(2'000));
  EXPECT_FALSE(policy.yield_due(at(2'001))) << "it has just done so";
  EXPECT_EQ(busy_until_yield(policy, 2'002), 2'000 + EStackPolicy::kYieldUs);
}

TEST(EStackPolicy, offers_nothing_after_it_has_slept_or_handed_over) {
  EStackPolicy policy;
  for (std::uint64_t us = 1'000; us < 9'000; us += 90) {
    EXPECT_FALSE(policy.yield_due(at(us)));
    if (us % 20 == 0)
      policy.gave_way();
    else
      policy.parked(EStackPolicy::kGaveWayUs);
  }
}

TEST(EStackPolicy, has_not_slept_because_a_procedure_took_long) {
  EStackPolicy policy;
  EXPECT_EQ(busy_until_yield(policy, 1'000, 5), 1'000 + EStackPolicy::kYieldUs);
}

TEST(EStackPolicy, keeps_its_processor_as_long_as_others_have_taken_it) {
  EStackPolicy policy;
  std::uint64_t us = busy_until_yield(policy, 1'000) + 700;  // another thread took a short time slice
  policy.yielded(700, at(us));
  EXPECT_EQ(busy_until_yield(policy, us), us + 700);
  policy.parked(700);
  EXPECT_EQ(busy_until_yield(policy, 5'000), 5'000 + EStackPolicy::kYieldUs) << "it has slept as long meanwhile";
}

TEST(EStackPolicy, pays_what_it_keeps_by_short_sleeps_too) {
  EStackPolicy policy;
  const std::uint64_t us = busy_until_yield(policy, 1'000) + 900;
  policy.yielded(900, at(us));
  for (int i = 0; i < 8; ++i) policy.parked(100);
  EXPECT_EQ(busy_until_yield(policy, us + 1'000), us + 1'000 + EStackPolicy::kYieldUs);
}

TEST(EStackPolicy, offers_its_processor_more_rarely_where_somebody_takes_a_time_slice) {
  EStackPolicy policy;
  const std::uint64_t back = busy_until_yield(policy, 1'000) + 3'000;  // a hog took a time slice
  policy.yielded(3'000, at(back));
  EXPECT_EQ(busy_until_yield(policy, back), back + EStackPolicy::kCostFactor * 3'000);
}

TEST(EStackPolicy, a_pause_after_an_offer_is_nobodys_time_slice) {
  EStackPolicy policy;
  policy.yielded(1, at(busy_until_yield(policy, 1'000) + 1));
  policy.parked(5'000);  // the caller paused, or a poller executed the calls
  EXPECT_EQ(busy_until_yield(policy, 7'000), 7'000 + EStackPolicy::kYieldUs);
}

}  // namespace
}  // namespace lrpc::server
