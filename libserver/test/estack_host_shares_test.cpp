// How many E-stacks each other host may hold. Together the other hosts are one user.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>

#include "estack_holders.h"

namespace lrpc::server {
namespace {

constexpr Holder host(std::uint64_t number) { return {kNobodyHere.uid, number}; }

void take(EStackShares& shares, Holder holder, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) shares.take(holder);
}

TEST(EStackSharesOfHosts, other_hosts_have_together_what_one_user_may_have_and_leave_some_to_the_next_host) {
  Shares shares(256, {});
  std::size_t free = 256;
  EXPECT_EQ(take_all(shares, host(1), free), 196U) << "all but an eighth of 224";
  EXPECT_EQ(take_all(shares, host(2), free), 12U) << "its fair share of the last 28";
  EXPECT_EQ(take_all(shares, host(3), free), 6U);
  for (std::uint64_t next = 4; next < 9; ++next) EXPECT_GE(take_all(shares, host(next), free), 1U) << next;
  EXPECT_EQ(shares.share(), 224U) << "one user";
  EXPECT_EQ(take_all(shares, kAlice, free), 14U) << "as beside any other user";
}

TEST(EStackSharesOfHosts, without_a_limit_of_one_user_there_is_none_of_one_host) {
  Shares shares(256, kNoLimit);
  std::size_t free = 256;
  EXPECT_EQ(take_all(shares, host(1), free), 256U);
}

TEST(EStackSharesOfHosts, a_host_at_its_limit_keeps_no_other_host_and_no_user_waiting) {
  Shares shares(16, {});  // the other hosts may have 14, and one of them 13
  take(shares, host(1), 13);
  Callers callers(shares);
  EXPECT_TRUE(callers.ring(host(1), 0));
  EXPECT_FALSE(shares.eligible_wait());
  EXPECT_EQ(callers.next(), -1);
  EXPECT_TRUE(callers.ring(host(2), 1));
  EXPECT_TRUE(shares.eligible_wait());
  EXPECT_EQ(callers.next(), 1);
  EXPECT_TRUE(callers.ring(kAlice, 2));
  EXPECT_EQ(callers.next(), 2);
  shares.give(host(1));
  EXPECT_EQ(callers.next(), 0);
}

TEST(EStackSharesOfHosts, of_the_other_hosts_the_one_with_the_fewest_is_served_first) {
  Shares shares(64, {}, {{kAlice, 4}});
  take(shares, host(1), 2);
  take(shares, host(2), 1);
  Callers callers(shares);
  callers.ring(kAlice, 0);
  callers.ring(host(1), 1);
  callers.ring(host(2), 2);
  callers.ring(host(2), 3);
  EXPECT_EQ(callers.next(), 2) << "the hosts have 3, Alice 4";
  take(shares, host(2), 1);
  EXPECT_EQ(callers.next(), 0) << "4 each: who has waited longer";
  EXPECT_EQ(callers.next(), 1) << "2 each: the same between hosts";
  EXPECT_EQ(shares.waiting(host(2)), 1U);
  shares.clear();
  EXPECT_FALSE(shares.any_waiting());
}

TEST(EStackSharesOfHosts, associations_of_a_host_at_rest_do_not_keep_another_host_from_what_it_wants) {
  constexpr std::size_t kCalls = 32;
  Shares shares(256, {});
  take(shares, host(1), 196);
  Callers callers(shares, kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) EXPECT_TRUE(callers.ring(host(2), i));
  while (shares.any_waiting()) {
    if (callers.next() != -1) {
      shares.take(host(2));
      continue;
    }
    ASSERT_FALSE(shares.refused()) << "no other user is to make room";
    ASSERT_EQ(shares.refused_host(), host(2));
    ASSERT_TRUE(shares.may_take(host(2), host(1))) << shares.held(host(1));
    ASSERT_TRUE(shares.is_wanted(host(1)));
    shares.give(host(1));
  }
  EXPECT_EQ(shares.held(host(2)), kCalls);
  EXPECT_EQ(shares.held(host(1)), 164U) << "the last eighth is free again";
}

TEST(EStackSharesOfHosts, between_hosts_the_share_decides_who_gives_way) {
  Shares shares(16, {});  // the other hosts' share is 6
  take(shares, host(1), 8);
  take(shares, host(2), 4);
  EXPECT_TRUE(shares.may_take(host(2), host(1)));
  EXPECT_FALSE(shares.may_take(host(1), host(2)));
  EXPECT_TRUE(shares.may_take(host(1), host(1)));
  EXPECT_TRUE(shares.has_few(host(2)));
  EXPECT_FALSE(shares.has_few(host(1)));
  shares.begin_search();
  std::size_t got = 0;
  while (got < 16 && shares.take_in_search(host(2), host(1), got)) continue;
  EXPECT_EQ(got, 2U) << "then both have 6";
}

TEST(EStackSharesOfHosts, a_host_at_its_limit_takes_nothing_from_other_users) {
  Shares shares(64, 16, {{kAlice, 16}, {kBob, 1}, {kCarol, 1}});  // each share is 14
  take(shares, host(1), 13);
  EXPECT_TRUE(shares.may_take(host(1), kAlice));
  shares.take(host(1));
  EXPECT_FALSE(shares.may_take(host(1), kAlice));
  EXPECT_TRUE(shares.may_take(host(2), kAlice));
}

TEST(EStackSharesOfHosts, estacks_of_one_host_look_for_calls_of_another) {
  Shares shares(16, {});
  for (const std::uint64_t one : {1U, 2U}) shares.admit(host(one));
  Callers callers(shares);
  const std::atomic<bool>& any_waits = shares.take(host(1));
  EXPECT_TRUE(callers.ring(host(2), 0));
  EXPECT_TRUE(any_waits) << "E-stacks of one host look for the calls of another";
  shares.dismiss(host(2));
  EXPECT_TRUE(shares.remove(host(2), callers.astacks[0]));
  EXPECT_FALSE(any_waits);
  shares.give(host(1));
  shares.dismiss(host(1));
  EXPECT_EQ(shares.held(host(1)), 0U);
}

}  // namespace
}  // namespace lrpc::server
