// How many E-stacks each user may hold.
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "estack_holders.h"

namespace lrpc::server {
namespace {

TEST(EStackShares, by_default_one_user_has_all_but_an_eighth) {
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 256}), 224U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 8}), 7U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 7}), 7U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 0}), 1U) << "at least one there is always";
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = kNoLimit}), 16U) << "no limit";
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = 3}), 3U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = 99}), 16U);
}

TEST(EStackShares, nobody_has_more_than_its_limit) {
  Shares two(8, 2, {{kAlice, 1}});
  EXPECT_TRUE(two.may_have_another(kAlice));
  two.take(kAlice);
  EXPECT_FALSE(two.may_have_another(kAlice));
  EXPECT_TRUE(two.may_have_another(kBob));
  two.give(kAlice);
  EXPECT_TRUE(two.may_have_another(kAlice));
}

TEST(EStackShares, a_share_is_of_those_who_have_or_want_any) {
  Shares some(12, kNoLimit, {{kAlice, 9}, {kBob, 1}});
  Callers callers(some);
  EXPECT_EQ(some.share(), 6U);
  callers.ring(kAlice, 0);
  EXPECT_EQ(some.share(), 6U);
  callers.ring(kCarol, 1);
  EXPECT_EQ(some.share(), 4U);
  EXPECT_TRUE(some.remove(kCarol, callers.astacks[1]));
  EXPECT_EQ(some.share(), 6U) << "who wants none any more counts no more";
  some.give(kBob);
  EXPECT_EQ(some.share(), 12U) << "nor who has none";
  EXPECT_EQ(Shares(12, kNoLimit).share(), 12U);
  Shares one(1, kNoLimit, {{kAlice, 1}, {kBob, 1}});
  EXPECT_EQ(one.share(), 1U);
  EXPECT_EQ(Shares(256, {}, {{kAlice, 1}, {kBob, 1}}).share(), 112U) << "the last eighth is not for these";
}

TEST(EStackShares, users_that_give_nothing_back_leave_some_for_the_next) {
  Shares shares(256, {});
  std::size_t free = 256;
  EXPECT_EQ(take_all(shares, kAlice, free), 224U) << "nobody else has any";
  EXPECT_EQ(take_all(shares, kBob, free), 14U) << "its fair share of the last 32";
  EXPECT_EQ(take_all(shares, kCarol, free), 7U);
  EXPECT_EQ(take_all(shares, kDave, free), 3U);
  for (uid_t user = 5; user < 12; ++user) EXPECT_GE(take_all(shares, user, free), 1U) << user;
  EXPECT_EQ(free, 0U);
  shares.give(kAlice);
  free = 1;
  EXPECT_EQ(take_all(shares, kAlice, free), 0U) << "it stays for the next";
  EXPECT_EQ(take_all(shares, 12, free), 1U);
}

TEST(EStackShares, small_supplies_leave_one_for_the_next_too) {
  Shares shares(16, {});
  std::size_t free = 16;
  EXPECT_EQ(take_all(shares, kAlice, free), 14U);
  EXPECT_EQ(take_all(shares, kBob, free), 1U);
  EXPECT_EQ(take_all(shares, kCarol, free), 1U);
}

TEST(EStackShares, several_users_may_have_all_but_the_last_eighth) {
  Shares shares(256, {}, {{kAlice, 100}, {kBob, 100}});
  std::size_t free = 56;
  EXPECT_EQ(take_all(shares, kCarol, free), 24U);
  EXPECT_FALSE(shares.may_have_another(kAlice));
  EXPECT_FALSE(shares.may_have_another(kBob));
  EXPECT_TRUE(shares.may_have_another(kDave));
}

TEST(EStackShares, a_limit_of_its_own_says_what_one_user_leaves) {
  Shares most(256, 250);
  std::size_t free = 256;
  EXPECT_EQ(take_all(most, kAlice, free), 250U);
  EXPECT_EQ(take_all(most, kBob, free), 3U) << "its fair share of the last 6";
  Shares all(256, kNoLimit, {{kAlice, 200}});
  free = 56;
  EXPECT_EQ(take_all(all, kBob, free), 56U) << "without a limit there are no fair shares";
  EXPECT_TRUE(all.may_have_another(kBob)) << "if there is one";
}

TEST(EStackShares, a_refused_user_is_served_when_another_has_given_one_back) {
  Shares shares(16, {}, {{kAlice, 13}, {kBob, 1}});
  Callers callers(shares);
  EXPECT_TRUE(callers.ring(kBob, 0));
  EXPECT_EQ(callers.next(), -1) << "two are free: for others";
  EXPECT_EQ(shares.refused(), kBob);
  EXPECT_TRUE(shares.eligible_wait()) << "those that rest look";
  shares.give(kAlice);
  EXPECT_FALSE(shares.refused());
  EXPECT_EQ(callers.next(), 0) << "nothing of its own has changed";
}

TEST(EStackShares, a_user_that_waits_is_refused_when_others_have_taken_meanwhile) {
  Shares shares(16, {}, {{kAlice, 12}, {kBob, 1}});
  Callers callers(shares);
  EXPECT_TRUE(callers.ring(kBob, 0));
  EXPECT_FALSE(shares.refused());
  shares.take(kAlice);
  EXPECT_EQ(callers.next(), -1);
  EXPECT_TRUE(callers.ring(kCarol, 1));
  EXPECT_EQ(callers.next(), 1) << "who has none gets one";
  shares.take(kCarol);
  shares.give(kBob);
  EXPECT_EQ(callers.next(), 0) << "so does who has none left";
}

TEST(EStackShares, associations_at_rest_do_not_keep_another_user_from_what_it_wants) {
  constexpr std::size_t kCalls = 32;
  for (const int at_rest : {100, 224}) {
    Shares shares(256, {}, {{kAlice, at_rest}});
    Callers callers(shares, kCalls);
    for (std::size_t i = 0; i < kCalls; ++i) EXPECT_TRUE(callers.ring(kBob, i));
    while (shares.any_waiting()) {
      if (callers.next() != -1) {
        shares.take(kBob);
        continue;
      }
      ASSERT_EQ(shares.refused(), kBob);
      ASSERT_TRUE(shares.may_take(kBob, kAlice)) << shares.held(kAlice);
      ASSERT_TRUE(shares.is_wanted(kAlice));
      shares.give(kAlice);
    }
    EXPECT_EQ(shares.held(kBob), kCalls);
    EXPECT_EQ(shares.held(kAlice), at_rest == 100 ? 100U : 192U) << "the last eighth is free again";
  }
}

TEST(EStackShares, a_refused_user_takes_from_nobody_that_would_get_it_back_first) {
  Shares shares(16, {}, {{kAlice, 12}, {kBob, 1}, {kCarol, 1}});
  Callers callers(shares);
  EXPECT_TRUE(callers.ring(kBob, 0));
  EXPECT_EQ(callers.next(), -1);
  EXPECT_TRUE(shares.may_take(kBob, kAlice));
  EXPECT_TRUE(shares.is_wanted(kAlice));
  EXPECT_FALSE(shares.may_take(kBob, kCarol));
  EXPECT_FALSE(shares.is_wanted(kCarol));
  EXPECT_TRUE(callers.ring(kDave, 1));
  EXPECT_TRUE(shares.may_take(kDave, kCarol)) << "who has none takes from anybody";
  EXPECT_TRUE(shares.is_wanted(kCarol));
}

TEST(EStackShares, who_has_more_than_its_share_gives_way_and_who_has_less_may_take) {
  Shares some(12, kNoLimit, {{kAlice, 9}, {kBob, 3}});  // each share is 6
  EXPECT_TRUE(some.may_take(kBob, kAlice));
  EXPECT_FALSE(some.may_take(kAlice, kBob)) << "who has enough takes from nobody within its share";
  EXPECT_TRUE(some.may_take(kAlice, kAlice)) << "but from itself";
  Callers callers(some);
  callers.ring(kCarol, 0);
  EXPECT_TRUE(some.may_take(kCarol, kAlice));
  EXPECT_TRUE(some.may_take(kCarol, kBob)) << "who has none may take from anybody";
  EXPECT_TRUE(some.is_wanted(kBob));
  const Shares even(12, kNoLimit, {{kAlice, 6}, {kBob, 6}});
  EXPECT_FALSE(even.may_take(kAlice, kBob));
}

TEST(EStackShares, one_search_takes_no_more_than_single_ones_would) {
  const auto taken = [](Shares& shares, uid_t user, uid_t holder) {
    shares.begin_search();
    std::size_t got = 0;
    while (got < 100 && shares.take_in_search(user, holder, got)) continue;
    return got;
  };
  Shares refused(256, {}, {{kAlice, 111}, {kBob, 113}});  // each share is 112
  EXPECT_EQ(taken(refused, kAlice, kBob), 1U);
  EXPECT_EQ(taken(refused, kAlice, kBob), 1U) << "each search begins anew";
  EXPECT_EQ(taken(refused, kBob, kAlice), 0U);
  Shares some(12, kNoLimit, {{kAlice, 9}, {kBob, 3}});  // each share is 6
  EXPECT_EQ(taken(some, kBob, kAlice), 3U);
}

TEST(EStackShares, who_is_at_its_limit_takes_from_nobody_else) {
  const Shares full(12, 2, {{kAlice, 2}, {kBob, 10}});
  EXPECT_FALSE(full.may_take(kAlice, kBob));
  EXPECT_TRUE(full.may_take(kAlice, kAlice));
}

TEST(EStackShares, who_waits_at_its_limit_does_not_have_others_look) {
  Shares shares(12, 2, {{kAlice, 1}, {kBob, 5}});
  Callers callers(shares);
  const std::atomic<bool>& alice_waits = shares.take(kAlice);
  const std::atomic<bool>& bob_waits = shares.take(kBob);
  EXPECT_FALSE(alice_waits);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(callers.ring(kAlice, i));
  EXPECT_TRUE(alice_waits) << "her own E-stacks look";
  EXPECT_FALSE(bob_waits);
  EXPECT_FALSE(shares.eligible_wait());
  EXPECT_TRUE(shares.is_wanted(kAlice));
  EXPECT_FALSE(shares.is_wanted(kBob));
  shares.give(kAlice);
  EXPECT_TRUE(shares.eligible_wait()) << "now she may have another";
  EXPECT_EQ(callers.next(), 0);
  shares.take(kAlice);
  EXPECT_FALSE(shares.eligible_wait());
  EXPECT_EQ(callers.next(), -1);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_TRUE(shares.remove(kAlice, callers.astacks[i]));
  EXPECT_FALSE(alice_waits);
  EXPECT_FALSE(shares.any_waiting());
}

TEST(EStackShares, an_astack_waits_once_however_often_it_rings) {
  Shares shares(1, kNoLimit);
  Callers callers(shares);
  EXPECT_TRUE(callers.ring(kAlice, 0));
  EXPECT_FALSE(callers.ring(kAlice, 0));
  EXPECT_EQ(callers.next(), 0);
  EXPECT_EQ(callers.next(), -1);
  EXPECT_TRUE(callers.ring(kAlice, 0)) << "its next call waits anew";
  EXPECT_TRUE(shares.remove(kAlice, callers.astacks[0]));
  EXPECT_FALSE(shares.remove(kAlice, callers.astacks[0]));
  EXPECT_EQ(callers.next(), -1);
  EXPECT_FALSE(shares.any_waiting());
}

TEST(EStackShares, who_has_fewest_is_served_next_and_of_its_calls_the_first) {
  Shares shares(16, 3, {{kAlice, 2}, {kBob, 1}, {kCarol, 3}});
  Callers callers(shares);
  callers.ring(kCarol, 0);
  callers.ring(kAlice, 1);
  callers.ring(kAlice, 2);
  callers.ring(kBob, 3);
  callers.ring(kBob, 4);
  EXPECT_EQ(callers.next(), 3);
  shares.take(kBob);
  EXPECT_EQ(callers.next(), 1) << "both have two: who has waited longer";
  shares.take(kAlice);
  auto bobs = shares.next();
  ASSERT_TRUE(bobs);
  callers.ring(kBob, 3);
  shares.put_back(*std::move(bobs));
  EXPECT_EQ(callers.next(), 4) << "there was no E-stack for it: it keeps its place";
  EXPECT_EQ(callers.next(), 3);
  EXPECT_EQ(callers.next(), -1) << "the others have as many as they may have";
  shares.clear();
  EXPECT_FALSE(shares.any_waiting());
  shares.give(kAlice);
  EXPECT_EQ(callers.next(), -1);
  EXPECT_TRUE(callers.ring(kAlice, 2));
}

}  // namespace
}  // namespace lrpc::server
