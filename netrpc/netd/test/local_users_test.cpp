// Which local users may reach other hosts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "../src/local_users.h"
#include "soft_limit.h"

namespace lrpc::netd::test {
namespace {

constexpr uid_t kStranger = 4'000'000'001;
constexpr gid_t kTheirGroup = 4'000'000'002;

Errc asked(const Result<MayCall>& users, uid_t uid, gid_t gid) {
  return users ? (*users)({{1, uid, gid}}).code() : users.code();
}

// Before other look-ups of the process: of several sources of the user database (nsswitch.conf(5)) the C library tells
// what the last one said, and one that is loaded by then may need no descriptor.
TEST(LocalUsersOfNetd, are_not_said_to_be_unknown_if_nobody_could_look_them_up) {
  std::optional<testing_lrpc::SoftLimit> few(std::in_place, 0);
  const Errc user = who_may_call({"no-such-user-here"}, {}).code();
  const Errc group = who_may_call({}, {"no-such-group-here"}).code();
  const Errc numbered = who_may_call({}, {std::to_string(kTheirGroup)}).code();
  few.reset();
  EXPECT_EQ(user, Errc::system_error);
  EXPECT_EQ(group, Errc::system_error);
  EXPECT_EQ(numbered, Errc::system_error) << "its members are not known";
  EXPECT_EQ(who_may_call({"no-such-user-here"}, {}).code(), Errc::invalid_argument);
  EXPECT_EQ(who_may_call({}, {"no-such-group-here"}).code(), Errc::invalid_argument);
}

TEST(LocalUsersOfNetd, are_root_and_its_own_user_unless_others_are_named) {
  const auto users = who_may_call({}, {});
  EXPECT_EQ(asked(users, 0, kTheirGroup), Errc::ok);
  EXPECT_EQ(asked(users, ::geteuid(), kTheirGroup), Errc::ok);
  EXPECT_EQ(asked(users, kStranger, kTheirGroup), Errc::not_permitted);
  EXPECT_EQ(asked(users, kStranger, 0), Errc::not_permitted) << "root's group is not root";
}

TEST(LocalUsersOfNetd, are_those_named_too) {
  EXPECT_EQ(asked(who_may_call({std::to_string(kStranger)}, {}), kStranger, kTheirGroup), Errc::ok);
  EXPECT_EQ(asked(who_may_call({}, {std::to_string(kTheirGroup)}), kStranger, kTheirGroup), Errc::ok);
  EXPECT_EQ(asked(who_may_call({"root"}, {"root"}), kStranger, 0), Errc::ok);
  EXPECT_EQ(asked(who_may_call({"root"}, {"root"}), kStranger, kTheirGroup), Errc::not_permitted);
}

TEST(LocalUsersOfNetd, are_those_whose_process_has_the_group) {
  const auto users = who_may_call({}, {std::to_string(kTheirGroup)});
  ASSERT_TRUE(users);
  const shim::Credentials stranger{1, kStranger, kTheirGroup + 1};
  EXPECT_TRUE((*users)(shim::ClientCredentials::of(stranger, {{7, kTheirGroup}})));
  EXPECT_EQ((*users)(shim::ClientCredentials::of(stranger, {{7}})).code(), Errc::not_permitted);
}

TEST(LocalUsersOfNetd, are_never_those_of_other_hosts) {
  EXPECT_EQ(who_may_call({"4294967295"}, {}).code(), Errc::invalid_argument);
  EXPECT_EQ(who_may_call({}, {"4294967295"}).code(), Errc::invalid_argument);
  EXPECT_EQ(who_may_call({""}, {}).code(), Errc::invalid_argument);
  EXPECT_EQ(who_may_call({"-1"}, {}).code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace lrpc::netd::test
