// Who may have how many E-stacks.
#include "estacks/estack_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace lrpc::server {
namespace {

constexpr uid_t kAlice = 1;
constexpr uid_t kBob = 2;
constexpr uid_t kCarol = 3;

struct Shares : EStackShares {
  Shares(std::size_t most, std::optional<std::size_t> of_user, const std::map<uid_t, int>& held = {})
      : EStackShares({.max_estacks = most, .max_estacks_per_user = of_user}) {
    for (const auto& [user, count] : held) {
      for (int i = 0; i < count; ++i) take(user);
    }
  }
};

/// A-stacks whose calls wait; of no binding, which nobody asks for here.
struct Callers {
  explicit Callers(EStackShares& shares, std::size_t most = 8) : of(shares), astacks(most) {}
  /// False: it has rung before.
  bool ring(uid_t user, std::size_t astack) {
    return of.add({.user = user, .binding = {}, .astack = &astacks[astack]});
  }
  /// Whose call is served next, by A-stack; -1: nobody's.
  int next() {
    const auto call = of.next();
    return call ? static_cast<int>(call->astack - astacks.data()) : -1;
  }
  EStackShares& of;
  std::vector<ServedAStack> astacks;
};

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
}

TEST(EStackShares, who_has_more_than_its_share_gives_way_and_who_has_less_may_take) {
  Shares some(12, kNoLimit, {{kAlice, 9}, {kBob, 3}});  // a share is 6
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
  Shares shares(8, 3, {{kAlice, 2}, {kBob, 1}, {kCarol, 3}});
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
