// How much of a shared resource users and hosts hold, and who may take more.
#include "lrpc/detail/shim/shares.h"

#include <gtest/gtest.h>

#include <new>
#include <utility>
#include <vector>

namespace lrpc::shim {
namespace {

struct CountedTable : UserTable {
  static inline int entries = 0;
  static inline bool no_memory = false;
  std::size_t& bind(uid_t user, std::size_t amount) {
    if (no_memory) throw std::bad_alloc();
    ++entries;
    return UserTable::bind(user, amount);
  }
  void unbind(uid_t user) noexcept {
    --entries;
    UserTable::unbind(user);
  }
};
using CountedShares = Shares<uid_t, CountedTable>;

TEST(UserShares, of_two_users_leave_some_for_the_next) {
  UserShares shares;
  std::vector<UserShares::Part> parts[17];
  const auto taken = [&](uid_t user) {
    while (auto part = shares.take_within(32, user, 1, 64)) parts[user].push_back(std::move(part));
    return parts[user].size();
  };
  EXPECT_EQ(taken(1), 32U) << "alone";
  EXPECT_EQ(taken(2), 12U) << "half of what the first leaves, but for an eighth of all";
  for (uid_t user = 3; user <= 15; ++user) EXPECT_GT(taken(user), 0U) << user;
  EXPECT_EQ(taken(16), 0U) << "all are taken";
  EXPECT_EQ(shares.taken(), 64U);
  parts[1].clear();
  EXPECT_GT(taken(16), 0U);
}

TEST(UserShares, of_a_refused_user_stay_as_they_are) {
  UserShares shares;
  const auto part = shares.take_within(50, 1, 30, 100);
  EXPECT_TRUE(part);
  EXPECT_FALSE(shares.take_within(50, 1, 21, 100)) << "more than the quota";
  EXPECT_FALSE(shares.take_within(80, 2, 71, 100)) << "more than is left";
  EXPECT_EQ(shares.taken(), 30U);
  EXPECT_TRUE(shares.take_within(50, 1, 20, 100));
}

TEST(Shares, can_be_taken_where_there_is_no_room) {
  CountedShares shares;
  EXPECT_TRUE(shares.has_room(1, 7, 16));
  const auto part = shares.take(1, 7);
  EXPECT_FALSE(shares.has_room(1, 1, 16)) << "it has half of all but an eighth";
  const auto more = shares.take(1, 1);
  EXPECT_TRUE(more);
  EXPECT_TRUE(shares.has_room(2, 1, 16));
  EXPECT_FALSE(shares.has_room(2, 9, 16)) << "more than is left";
}

TEST(Shares, come_back_when_a_part_is_overwritten_or_goes) {
  CountedShares shares;
  {
    auto part = shares.take(1, 5);
    auto other = shares.take(1, 7);
    EXPECT_EQ(shares.taken(), 12U);
    other = std::move(part);
    EXPECT_EQ(shares.taken(), 5U) << "once each";
    EXPECT_TRUE(other);
    other = {};
    EXPECT_EQ(shares.taken(), 0U);
    EXPECT_FALSE(other);
    part = shares.take(2, 9);
    EXPECT_EQ(CountedTable::entries, 1) << "one that has nothing is forgotten";
  }
  EXPECT_EQ(shares.taken(), 0U);
  EXPECT_EQ(CountedTable::entries, 0);
}

TEST(Shares, of_nothing_are_parts_too) {
  UserShares shares;
  auto some = shares.take_within(50, 1, 5, 100);
  const auto none = shares.take_within(50, 1, 0, 100);
  const auto of_other = shares.take_within(50, 2, 0, 100);
  EXPECT_TRUE(none);
  EXPECT_TRUE(of_other);
  some = {};
  EXPECT_EQ(shares.taken(), 0U);
}

TEST(Shares, without_memory_are_not_taken) {
  CountedShares shares;
  CountedTable::no_memory = true;
  EXPECT_FALSE(shares.take(1, 5));
  EXPECT_THROW((void)shares.take_within(50, 1, 5, 100), std::bad_alloc);
  CountedTable::no_memory = false;
  EXPECT_EQ(shares.taken(), 0U);
}

}  // namespace
}  // namespace lrpc::shim
