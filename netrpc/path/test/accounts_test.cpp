// The broker's accounts: what they count, for how long, and which users are refused.
#include "accounts.h"

#include <gtest/gtest.h>

#include <iterator>
#include <list>
#include <memory>
#include <utility>
#include <vector>

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

TEST(Accounts, leave_some_to_the_next_user_however_many_take_what_they_may) {
  const BrokerOptions options{.max_calls_to_host = 64, .max_paths = 64};
  Accounts accounts(options);
  std::vector<std::unique_ptr<Claim>> claims;
  std::list<CallAccounts> called;
  std::vector<Share> calls;
  for (uid_t user = kFirstUser; user < kFirstUser + 8; ++user) {
    const std::size_t before = claims.size();
    while (auto claim = accounts.claim(claims.size() + 1, user, 1)) claims.push_back(*std::move(claim));
    ASSERT_GE(claims.size(), before + 1) << "user " << user;
    called.push_back(accounts.to_host(10, *claims.back()));
    called.push_back(accounts.to_group(4, *claims.back()));
    for (auto to = std::prev(called.end(), 2); to != called.end(); ++to) {
      const std::size_t calls_before = calls.size();
      for (Share call = to->call(); call.granted(); call = to->call()) calls.push_back(std::move(call));
      EXPECT_GE(calls.size(), calls_before + 1) << "user " << user << (to->hosts != 1 ? ", to a group" : ", to a host");
    }
  }
  EXPECT_EQ(accounts.claim(1000, kFirstUser, 1).error().text,
            "this user has as many remote bindings as one may have beside others");
}

TEST(Accounts, leave_threads_to_the_next_user_whatever_hosts_the_others_call) {
  const BrokerOptions options;
  Accounts accounts(options);
  std::vector<std::unique_ptr<Claim>> claims;
  std::list<CallAccounts> called;
  std::vector<Share> calls;
  for (uid_t user = kFirstUser; user < kFirstUser + 8; ++user) {
    claims.push_back(accounts.claim(user, user, 1).value());
    const std::size_t before = calls.size();
    for (HostAddress host = user * 100; host < user * 100 + 20; ++host) {
      called.push_back(accounts.to_host(host, *claims.back()));
      for (Share call = called.back().call(); call.granted(); call = called.back().call())
        calls.push_back(std::move(call));
    }
    EXPECT_GE(calls.size(), before + 1) << "user " << user;
    EXPECT_LT(calls.size(), kMaxEStacks);
  }
  EXPECT_FALSE(accounts.import(*claims.front()->of_user, 1).granted());
  claims.push_back(accounts.claim(1, kFirstUser + 8, 1).value());
  EXPECT_TRUE(accounts.import(*claims.back()->of_user, 1).granted());
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
  {
    const CallAccounts group = accounts.to_group(half(kMaxEStacks), **claim);
    EXPECT_EQ(group.call().refused_by(), &host.of_user->calls) << "its user has a call to a host";
    const CallAccounts whole = accounts.to_group(half(kMaxEStacks) - 1, **claim);
    const Share all = whole.call();
    EXPECT_TRUE(all.granted());
    EXPECT_EQ(whole.all->holding.amount(), half(kMaxEStacks));
  }
  const CallAccounts of_other = accounts.to_host(10, **others);
  const Share three = of_other.call();
  EXPECT_TRUE(three.granted());
  EXPECT_EQ(of_other.call().refused_by(), &of_other.of_user_at_host->calls) << "beside another user";
  EXPECT_TRUE(accounts.to_host(11, **claim).call().granted());
}

}  // namespace
}  // namespace lrpc::netpath
