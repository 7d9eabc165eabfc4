// How a nameserver's resources are shared among users who take all that they can get.
#include "quota/fair_shares.h"

#include <gtest/gtest.h>

#include "daemon/daemon_limits.h"
#include "quota/unread.h"
#include "quota/user_accounts.h"

namespace lrpc::nameserver {
namespace {

using namespace std::chrono_literals;

constexpr UserQuota kBoundless{kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit, kNoLimit};
constexpr uid_t kOwnUser = 990;
constexpr uid_t kHonest = 5000;
constexpr uid_t kFirstHostile = 6000;

/// How much `user` gets if it takes `at_once` at a time, as long as there is room for it.
std::uint64_t take_all(UserAccounts& accounts, uid_t user, Quota which, std::uint64_t at_once = 1) {
  while (accounts.room(user, which, at_once)) accounts.take(user, which, at_once);
  return accounts.taken(user, which);
}

/// The same for connections, which can be taken away from another user.
void take_connections(UserAccounts& accounts, uid_t user) {
  constexpr Quota kWhich = Quota::connections;
  for (;;) {
    if (!accounts.room(user, kWhich)) {
      const auto from = accounts.who_gives_way(user, kWhich);
      if (!from) return;
      ASSERT_GT(accounts.taken(*from, kWhich), accounts.taken(user, kWhich) + 1)
          << "nobody gives way to one who has more";
      accounts.give(*from, kWhich);
    }
    ASSERT_TRUE(accounts.room(user, kWhich));
    accounts.take(user, kWhich);
  }
}

UserAccounts accounts_without_quotas(const Limits& limits = {}) {
  return {[](uid_t) { return kBoundless; }, supplies_of(limits), kOwnUser};
}

class Crowds : public testing::TestWithParam<int> {
 protected:
  /// All users take all that they can get, one after another, in two rounds.
  void take_all_of(Quota which, std::uint64_t at_once = 1) {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < GetParam(); ++i)
        (void)take_all(accounts_, kFirstHostile + static_cast<uid_t>(i), which, at_once);
    }
  }
  UserAccounts accounts_ = accounts_without_quotas();
};
INSTANTIATE_TEST_SUITE_P(Users, Crowds, testing::Values(1, 2, 10, 40));

TEST_P(Crowds, leave_a_newcomer_what_an_import_needs) {
  take_all_of(Quota::descriptors_in_flight, 3);
  take_all_of(Quota::binds);
  take_all_of(Quota::imports);
  EXPECT_GE(take_all(accounts_, kHonest, Quota::descriptors_in_flight, 3), 6U);
  EXPECT_GE(take_all(accounts_, kHonest, Quota::binds), 4U);
  EXPECT_GE(take_all(accounts_, kHonest, Quota::imports), 32U);
}

TEST_P(Crowds, leave_a_newcomer_what_an_export_needs) {
  take_all_of(Quota::names);
  take_all_of(Quota::declaration_bytes, 4096);
  EXPECT_GE(take_all(accounts_, kHonest, Quota::names), 16U);
  EXPECT_GE(take_all(accounts_, kHonest, Quota::declaration_bytes, 4096), std::uint64_t{1} << 20);
}

TEST_P(Crowds, leave_root_and_the_own_user_what_is_reserved) {
  for (const Quota which :
       {Quota::connections, Quota::names, Quota::imports, Quota::descriptors_in_flight, Quota::binds}) {
    take_all_of(which);
    (void)take_all(accounts_, kHonest, which);
    EXPECT_TRUE(accounts_.room(kOwnUser, which, 16)) << name_of(which).key;
    EXPECT_GE(take_all(accounts_, 0, which), 48U) << name_of(which).key;
  }
}

/// Connections can be taken away: all users end with the same number, whoever came first.
TEST_P(Crowds, give_connections_back_until_all_have_the_same) {
  for (int i = 0; i < GetParam(); ++i) take_connections(accounts_, kFirstHostile + static_cast<uid_t>(i));
  take_connections(accounts_, kHonest);
  const std::uint64_t users = static_cast<std::uint64_t>(GetParam()) + 1;
  EXPECT_EQ(accounts_.taken(kHonest, Quota::connections), (1024 - 64) / users);
}

TEST_P(Crowds, give_way_to_root_as_long_as_they_have_anything) {
  take_all_of(Quota::connections);
  (void)take_all(accounts_, 0, Quota::connections);
  std::uint64_t taken_back = 0;
  for (; const auto from = accounts_.who_gives_way(0, Quota::connections); ++taken_back) {
    accounts_.give(*from, Quota::connections);
    ASSERT_TRUE(accounts_.room(0, Quota::connections));
    accounts_.take(0, Quota::connections);
  }
  EXPECT_EQ(taken_back, 1024U - 64);
}

TEST(FairShares, of_users_who_are_alone_are_large) {
  UserAccounts accounts = accounts_without_quotas();
  EXPECT_GE(take_all(accounts, kHonest, Quota::descriptors_in_flight), 150U);
  EXPECT_GE(take_all(accounts, kHonest, Quota::binds), UserQuota{}.binds);
  EXPECT_GE(take_all(accounts, kHonest, Quota::imports), UserQuota{}.imports);
  EXPECT_GE(take_all(accounts, kHonest, Quota::names), UserQuota{}.names);
  EXPECT_GE(take_all(accounts, kHonest, Quota::declaration_bytes, 1 << 20), UserQuota{}.declaration_bytes);
  EXPECT_TRUE(accounts.room(kHonest, Quota::region_bytes, std::uint64_t{1} << 60));
}

TEST(FairShares, come_back_with_what_is_given_back) {
  UserAccounts accounts = accounts_without_quotas();
  const std::uint64_t alone = take_all(accounts, kHonest, Quota::binds);
  (void)take_all(accounts, kFirstHostile, Quota::binds);
  accounts.give(kHonest, Quota::binds, alone);
  const std::uint64_t beside = take_all(accounts, kHonest, Quota::binds);
  EXPECT_LT(beside, alone);
  accounts.give(kFirstHostile, Quota::binds, accounts.taken(kFirstHostile, Quota::binds));
  EXPECT_EQ(take_all(accounts, kHonest, Quota::binds), alone);
  accounts.give(kHonest, Quota::binds, alone);
  EXPECT_EQ(accounts.size(), 0U);
}

/// Each subordinate uid is a user. If there are more users than connections, newcomers get none; root still gets its
/// own.
TEST(FairShares, of_more_users_than_parts_are_for_who_comes_first) {
  UserAccounts accounts = accounts_without_quotas();
  for (uid_t user = kFirstHostile; accounts.room(user, Quota::connections); ++user)
    accounts.take(user, Quota::connections);
  EXPECT_FALSE(accounts.who_gives_way(kHonest, Quota::connections));
  EXPECT_TRUE(accounts.room(0, Quota::connections));
}

TEST(FairShares, do_not_lift_a_quota) {
  UserAccounts accounts([](uid_t) { return UserQuota{.connections = 2}; }, supplies_of({.max_connections = 4}),
                        kOwnUser);
  accounts.take(kFirstHostile, Quota::connections, 2);
  accounts.take(kHonest, Quota::connections, 2);
  EXPECT_FALSE(accounts.who_gives_way(kHonest, Quota::connections));
  EXPECT_EQ(accounts.who_gives_way(0, Quota::connections).has_value(), true);
}

TEST(DaemonLimits, fit_the_descriptors_that_there_are) {
  for (const std::uint64_t descriptors : {256U, 1024U, 4096U}) {
    const Limits limits = within_descriptors({}, descriptors);
    const std::uint64_t to_be_closed = descriptors / 8 + std::min<std::uint64_t>(descriptors / 16, 64);
    EXPECT_LE(2 * limits.max_connections + 2 * limits.max_binds + limits.max_fds_in_flight + 64,
              descriptors - to_be_closed);
    EXPECT_GE(limits.max_connections, descriptors / 8);
    EXPECT_GE(limits.max_fds_in_flight, 6U);
  }
  EXPECT_EQ(within_descriptors({}, 1'048'576).max_connections, Limits{}.max_connections);
}

TEST(DaemonLimits, of_few_descriptors_are_told_with_what_is_left) {
  EXPECT_NE(few_descriptors(within_descriptors({}, 256), 256).find("at most 36 connections"), std::string::npos);
  EXPECT_EQ(few_descriptors(within_descriptors({}, 1024), 1024), "");
}

class UnreadMessages : public testing::Test {
 protected:
  bool after(Unread::Clock::duration time, std::uint64_t bytes) { return unread_.stays(bytes, now_ += time, 60s); }

  Unread unread_;
  Unread::Clock::time_point now_{};
};

TEST_F(UnreadMessages, stay_if_none_is_read_for_a_minute) {
  EXPECT_FALSE(after(1s, 100));
  EXPECT_FALSE(after(59s, 100));
  EXPECT_FALSE(after(999ms, 300)) << "more may come";
  EXPECT_TRUE(after(1ms, 300));
}

TEST_F(UnreadMessages, do_not_stay_while_some_are_read) {
  for (std::uint64_t bytes = 10'000; bytes > 0; bytes -= 100) EXPECT_FALSE(after(59s, bytes));
  EXPECT_TRUE(unread_.any());
  EXPECT_FALSE(after(59s, 0));
  EXPECT_FALSE(unread_.any());
  EXPECT_FALSE(after(59s, 100));
  EXPECT_FALSE(after(59s, 100));
}

}  // namespace
}  // namespace lrpc::nameserver
