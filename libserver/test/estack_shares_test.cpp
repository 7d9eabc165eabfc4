// Who may have how many E-stacks.
#include "estack_shares.h"

#include <gtest/gtest.h>

namespace lrpc::server {
namespace {

constexpr uid_t kAlice = 1;
constexpr uid_t kBob = 2;
constexpr uid_t kCarol = 3;

EStackShares shares(std::size_t most, std::optional<std::size_t> of_user, std::map<uid_t, int> held) {
  EStackShares made({.max_estacks = most, .max_estacks_per_user = of_user});
  for (const auto& [user, count] : held) {
    for (int i = 0; i < count; ++i) made.take(user);
  }
  return made;
}

TEST(EStackShares, by_default_one_user_has_all_but_an_eighth) {
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 256}), 224U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 8}), 7U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 7}), 7U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 0}), 1U) << "at least one there is always";
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = 0}), 16U) << "no limit";
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = 3}), 3U);
  EXPECT_EQ(most_estacks_of_user({.max_estacks = 16, .max_estacks_per_user = 99}), 16U);
}

TEST(EStackShares, nobody_has_more_than_its_limit) {
  auto two = shares(8, 2, {{kAlice, 1}});
  EXPECT_TRUE(two.may_have_another(kAlice));
  two.take(kAlice);
  EXPECT_FALSE(two.may_have_another(kAlice));
  EXPECT_TRUE(two.may_have_another(kBob));
  two.give(kAlice);
  EXPECT_TRUE(two.may_have_another(kAlice));
}

TEST(EStackShares, a_share_is_of_those_who_have_or_want_any) {
  const auto some = shares(12, 0, {{kAlice, 9}, {kBob, 1}});
  EXPECT_EQ(some.share({}), 6U);
  EXPECT_EQ(some.share({kAlice}), 6U);
  EXPECT_EQ(some.share({kAlice, kCarol}), 4U);
  EXPECT_EQ(shares(12, 0, {}).share({kCarol}), 12U);
  EXPECT_EQ(shares(1, 0, {{kAlice, 1}}).share({kBob, kCarol}), 1U);
  auto gone = shares(12, 0, {{kAlice, 1}, {kBob, 1}});
  gone.give(kBob);
  EXPECT_EQ(gone.share({}), 12U) << "who has none counts no more";
}

TEST(EStackShares, who_has_more_than_its_share_gives_way_and_who_has_less_may_take) {
  const auto some = shares(12, 0, {{kAlice, 9}, {kBob, 3}});  // a share is 6
  EXPECT_TRUE(some.may_take(kBob, kAlice, 6));
  EXPECT_FALSE(some.may_take(kAlice, kBob, 6)) << "who has enough takes from nobody within its share";
  EXPECT_TRUE(some.may_take(kAlice, kAlice, 6)) << "but from itself";
  EXPECT_TRUE(some.may_take(kCarol, kAlice, 4));
  EXPECT_TRUE(some.may_take(kCarol, kBob, 4)) << "who has none may take from anybody";
  const auto even = shares(12, 0, {{kAlice, 6}, {kBob, 6}});
  EXPECT_FALSE(even.may_take(kAlice, kBob, 6));
}

TEST(EStackShares, who_is_at_its_limit_takes_from_nobody_else) {
  const auto full = shares(12, 2, {{kAlice, 2}, {kBob, 10}});
  EXPECT_FALSE(full.may_take(kAlice, kBob, 6));
  EXPECT_TRUE(full.may_take(kAlice, kAlice, 6));
}

}  // namespace
}  // namespace lrpc::server
