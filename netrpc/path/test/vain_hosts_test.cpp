// How many hosts a user may ask in vain: the policy, with times that the test passes in.
#include "vain_hosts.h"

#include <gtest/gtest.h>

namespace lrpc::netpath {
namespace {

using namespace std::chrono_literals;

constexpr VainHosts::Time kStart{1h};
constexpr uid_t kUser = 7;

/// Asks hosts that no other call of this file asks, until one is refused. Returns how many were not refused.
HostAddress ask_all(VainHosts& hosts, uid_t user, VainHosts::Time now = kStart) {
  HostAddress asked = 0;
  while (hosts.may_ask(user, user << 16 | asked, now)) ++asked;
  return asked;
}

TEST(VainHostsTest, are_half_of_all_for_a_user_who_is_alone) {
  VainHosts hosts;
  EXPECT_EQ(ask_all(hosts, kUser), VainHosts::kMost / 2);
  EXPECT_TRUE(hosts.may_ask(kUser, kUser << 16, kStart)) << "it counts already";
  hosts.bound(kUser, kUser << 16);
  EXPECT_TRUE(hosts.may_ask(kUser, 1, kStart));
  EXPECT_FALSE(hosts.may_ask(kUser, 2, kStart));
}

TEST(VainHostsTest, leave_some_to_the_next_user_however_many_take_what_they_may) {
  VainHosts hosts;
  HostAddress all = 0;
  for (uid_t user = kUser; user < kUser + 20; ++user) {
    const HostAddress asked = ask_all(hosts, user);
    EXPECT_GE(asked, 1U) << user;
    all += asked;
  }
  EXPECT_LE(all, VainHosts::kMost);
}

TEST(VainHostsTest, count_until_they_have_not_been_asked_for_some_minutes) {
  VainHosts hosts;
  (void)ask_all(hosts, kUser);
  EXPECT_TRUE(hosts.may_ask(kUser, kUser << 16, kStart + 1min));  // asked again
  EXPECT_FALSE(hosts.may_ask(kUser, 1, kStart + VainHosts::kKept - 1ns));
  EXPECT_EQ(ask_all(hosts, kUser, kStart + VainHosts::kKept), VainHosts::kMost / 2) << "the first one counts already";
}

}  // namespace
}  // namespace lrpc::netpath
