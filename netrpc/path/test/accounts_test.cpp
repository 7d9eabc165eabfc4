// The broker's accounts: what counts in them, for how long, and who is refused.
#include "accounts.h"

#include <gtest/gtest.h>

#include <utility>

namespace lrpc::netpath {
namespace {

constexpr uid_t kFirstUser = 7;
constexpr uid_t kSecondUser = 8;

TEST(Share, of_several_holdings_counts_in_all_of_them_or_in_none) {
  Holding one;
  Holding two;
  ASSERT_TRUE(two.take(2, 3));
  {
    const Share refused{{&one, 1, 10}, {&two, 2, 3}};
    EXPECT_EQ(refused.refused_by(), &two);
    EXPECT_EQ(one.amount(), 0U) << "at once, not at the end of the scope";
    Share granted{{&one, 1, 10}, {nullptr, 5, 0}, {&two, 1, 3}};
    ASSERT_TRUE(granted.granted());
    const Share moved = std::move(granted);
    EXPECT_EQ(one.amount(), 1U);
    EXPECT_EQ(two.amount(), 3U);
  }
  EXPECT_EQ(one.amount(), 0U);
  EXPECT_EQ(two.amount(), 2U);
}

TEST(Accounts, leave_half_of_the_paths_to_other_users_until_the_claim_ends) {
  const BrokerOptions options{.max_paths = 5};
  Accounts accounts(options);
  auto first = accounts.claim(1, kFirstUser, 3);
  ASSERT_TRUE(first);
  EXPECT_EQ(accounts.claim(1, kSecondUser, 1).code(), Errc::invalid_argument) << "one path for one binding";
  EXPECT_EQ(accounts.claim(2, kFirstUser, 1).code(), Errc::limit_reached);
  EXPECT_EQ(accounts.claim(2, kSecondUser, 3).code(), Errc::limit_reached) << "of all users";
  auto other = accounts.claim(2, kSecondUser, 2);
  EXPECT_TRUE(other);
  *first = nullptr;
  EXPECT_TRUE(accounts.claim(1, kFirstUser, 3));
}

TEST(Accounts, count_a_call_for_its_user_its_host_and_once_for_each_member_of_a_group) {
  const BrokerOptions options{.max_calls_to_host = 3};
  Accounts accounts(options);
  const auto claim = accounts.claim(1, kFirstUser, 1);
  const auto others = accounts.claim(2, kSecondUser, 1);
  ASSERT_TRUE(claim && others);
  const CallAccounts host = accounts.to_host(10, **claim);
  const Share one = host.call();
  const Share two = host.question();
  EXPECT_TRUE(one.granted() && two.granted());
  EXPECT_EQ(host.call().refused_by(), &host.of_user_at_host->calls) << "half of three";
  const CallAccounts of_other = accounts.to_host(10, **others);
  const Share three = of_other.call();
  EXPECT_TRUE(three.granted());
  EXPECT_EQ(of_other.call().refused_by(), &host.of_host->calls);
  EXPECT_TRUE(accounts.to_host(11, **claim).call().granted());

  const CallAccounts group = accounts.to_group(half(kMaxEStacks), **claim);
  EXPECT_EQ(group.call().refused_by(), &host.of_user->calls) << "its user has a call to a host";
  const CallAccounts whole = accounts.to_group(half(kMaxEStacks) - 1, **claim);
  const Share all = whole.call();
  EXPECT_TRUE(all.granted());
  EXPECT_EQ(whole.to_members->amount(), half(kMaxEStacks) - 1);
}

}  // namespace
}  // namespace lrpc::netpath
