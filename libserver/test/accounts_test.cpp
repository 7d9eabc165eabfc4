// How much of a server one user may hold.
#include "quota/accounts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "soft_limit.h"
#include "users.h"

namespace lrpc::server {
namespace {

std::shared_ptr<Accounts> accounts_of(const ServerOptions& options) { return std::make_shared<Accounts>(options); }

constexpr uid_t kOwnUser = 77;  ///< The user of the server itself.

struct Limited {
  const char* option;
  std::uint64_t Holding::*what;
  ServerOptions options;  ///< Allow two for each user.
};

TEST(Accounts, each_limit_of_a_user_holds_for_that_user_alone_and_is_named) {
  const Limited all[] = {
      {"max_bindings_per_user", &Holding::bindings, {.max_bindings_per_user = 2}},
      {"max_region_bytes_per_user", &Holding::region_bytes, {.max_region_bytes_per_user = 2}},
      {"max_grown_astacks_per_user", &Holding::grown_astacks, {.max_grown_astacks_per_user = 2}},
      {"max_grown_bytes_per_user", &Holding::grown_bytes, {.max_grown_bytes_per_user = 2}},
      {"max_descriptors_per_user", &Holding::descriptors, {.max_descriptors_per_user = 2}},
      {"max_estacks_per_user", &Holding::sealed_clients, {.max_estacks_per_user = 2}},
  };
  for (const Limited& limited : all) {
    Holding one;
    one.*limited.what = 1;
    const auto accounts = accounts_of(limited.options);
    const Share first = accounts->take(kAlice, one);
    EXPECT_TRUE(accounts->room(kAlice, one)) << limited.option;
    EXPECT_EQ(accounts->left(kAlice).*limited.what, 1U) << limited.option;
    Share second = accounts->take(kAlice, one);
    const Status refused = accounts->room(kAlice, one);
    ASSERT_EQ(refused.code(), Errc::limit_reached) << limited.option;
    EXPECT_NE(refused.error().text.find("user 1 has 2 "), std::string::npos) << refused.error().text;
    EXPECT_NE(refused.error().text.find(std::string("(") + limited.option + ")"), std::string::npos)
        << refused.error().text;
    EXPECT_EQ(accounts->left(kAlice).*limited.what, 0U) << limited.option;
    EXPECT_TRUE(accounts->room(kAlice, {})) << "who wants nothing may have it";
    EXPECT_TRUE(accounts->room(kBob, one)) << limited.option;
    second.give();
    EXPECT_TRUE(accounts->room(kAlice, one)) << limited.option;
  }
}

TEST(Accounts, limits_of_all_users_hold_for_all_together) {
  const auto accounts = accounts_of({.max_estacks = 1, .max_bindings = 2});
  const Share alices = accounts->take(kAlice, {.bindings = 1, .sealed_clients = 1});
  EXPECT_TRUE(accounts->room({.bindings = 1}));
  const Share bobs = accounts->take(kBob, {.bindings = 1});
  EXPECT_NE(accounts->room({.bindings = 1}).error().text.find("(max_bindings)"), std::string::npos);
  EXPECT_NE(accounts->room({.sealed_clients = 1}).error().text.find("(max_estacks)"), std::string::npos);
  EXPECT_EQ(accounts->all(), (Holding{.bindings = 2, .sealed_clients = 1}));
}

TEST(Accounts, however_many_users_take_what_they_may_the_next_one_finds_some) {
  const testing_lrpc::SoftLimit limit(64);
  struct Shared {
    std::uint64_t Holding::*what;
    ServerOptions options;
    std::size_t alone;
  };
  const Shared all[] = {
      {&Holding::bindings, {.max_bindings = 64, .max_bindings_per_user = 32}, 32},
      {&Holding::bindings, {.max_bindings = 64}, 53},  // the quota exceeds the share
      {&Holding::sealed_clients, {.max_estacks = 64, .max_estacks_per_user = 56}, 53},
      {&Holding::descriptors, {}, 32},
  };
  for (const Shared& limited : all) {
    Holding one;
    one.*limited.what = 1;
    const auto accounts = std::make_shared<Accounts>(limited.options, kOwnUser);
    std::vector<Share> shares;
    const auto take_all = [&](uid_t user) {
      std::size_t taken = 0;
      for (; accounts->room(user, one) && accounts->room(one); ++taken) shares.push_back(accounts->take(user, one));
      return taken;
    };
    EXPECT_EQ(take_all(kAlice), limited.alone) << "alone it has its quota, if that leaves some";
    for (uid_t user = kBob; user < kBob + 5; ++user)
      EXPECT_GE(take_all(user), 1U) << "of " << limited.alone << ", user " << user;
    const Status refused = accounts->room(kBob, one);
    ASSERT_EQ(refused.code(), Errc::limit_reached);
    EXPECT_NE(refused.error().text.find("beside what others have"), std::string::npos) << refused.error().text;
    EXPECT_EQ(accounts->left(kBob).*limited.what, 0U);
    EXPECT_TRUE(accounts->room(kBob, one, true)) << "what was promised is there";
    for (uid_t user = kBob + 5; take_all(user) != 0; ++user) ASSERT_LT(user, 100U);
    EXPECT_TRUE(accounts->room(0, one)) << "however many users there are";
    EXPECT_TRUE(accounts->room(kOwnUser, one));
  }
}

TEST(Accounts, other_hosts_together_leave_some_to_the_users_here_and_to_the_program) {
  const testing_lrpc::SoftLimit limit(160);
  const auto accounts = std::make_shared<Accounts>(ServerOptions{.max_bindings = 64}, kOwnUser);
  std::vector<Share> shares;
  const Holding binding{.bindings = 1};
  const Holding descriptors{.descriptors = 2};
  while (accounts->room(kNobodyHere.uid, binding)) shares.push_back(accounts->take(kNobodyHere.uid, binding));
  while (accounts->room(kNobodyHere.uid, descriptors)) shares.push_back(accounts->take(kNobodyHere.uid, descriptors));
  EXPECT_GE(accounts->all().bindings, 32U);
  EXPECT_LE(accounts->all().descriptors, 140U);
  EXPECT_TRUE(accounts->room(kAlice, binding) && accounts->room(binding));
  EXPECT_TRUE(accounts->room(kAlice, descriptors));
}

TEST(Accounts, a_limit_that_is_switched_off_has_no_shares) {
  const auto accounts = accounts_of({.max_bindings = 8, .max_bindings_per_user = kNoLimit});
  const Share alices = accounts->take(kAlice, {.bindings = 5});
  const Share bobs = accounts->take(kBob, {.bindings = 2});
  EXPECT_TRUE(accounts->room(kAlice, {.bindings = 1}));
}

TEST(Accounts, an_amount_that_cannot_be_added_is_too_much) {
  const auto accounts = accounts_of({.max_region_bytes_per_user = 100});
  const Share some = accounts->take(kAlice, {.region_bytes = 1});
  EXPECT_FALSE(accounts->room(kAlice, {.region_bytes = std::uint64_t{kNoLimit}}));
}

TEST(Accounts, a_share_goes_back_once_and_moves) {
  const auto accounts = accounts_of({});
  Share kept;
  {
    Share first = accounts->take(kAlice, {.bindings = 1, .region_bytes = 7});
    kept = std::move(first);
  }
  EXPECT_EQ(accounts->all(), (Holding{.bindings = 1, .region_bytes = 7}));
  kept.give();
  kept.give();
  EXPECT_EQ(accounts->all(), Holding{});
}

TEST(Accounts, the_handles_of_a_user_are_counted_together_while_it_has_something) {
  const auto accounts = accounts_of({.max_handles_per_user = 1});
  std::optional<Share> one = accounts->take(kAlice, {.bindings = 1});
  const Share bobs = accounts->take(kBob, {.bindings = 1});
  const auto count = accounts->handles(kAlice);
  EXPECT_EQ(accounts->handles(kAlice), count);
  EXPECT_NE(accounts->handles(kBob), count);
  EXPECT_TRUE(count->take());
  EXPECT_FALSE(count->take());
  one.reset();
  const Share later = accounts->take(kAlice, {.bindings = 1});
  EXPECT_NE(accounts->handles(kAlice), count);
}

TEST(Accounts, the_handles_of_a_host_are_counted_together_and_as_some_of_all_other_hosts) {
  const auto accounts = accounts_of({.max_handles_per_user = 8});
  const Share all = accounts->take(kNobodyHere.uid, {.bindings = 2});
  const Holder host(kNobodyHere.uid, 1);
  auto count = accounts->handles(host);
  const auto others = accounts->handles({kNobodyHere.uid, 2});
  EXPECT_EQ(accounts->handles(host), count);
  EXPECT_NE(others, count);
  for (const std::size_t has : {1U, 2U, 3U}) {
    EXPECT_TRUE(count->take());
    EXPECT_EQ(accounts->handles(host)->open(), has);
  }
  EXPECT_FALSE(count->take()) << "half of what leaves an eighth";
  EXPECT_TRUE(others->take());
  EXPECT_TRUE(others->take());
  EXPECT_FALSE(others->take()) << "half of what the first host has left";
  count->give(3);
  count.reset();
  EXPECT_EQ(accounts->handles(host)->open(), 0U) << "a new one, when no binding has the old one";
}

/// Something that has ended, but counts while it is in use.
struct Ended {
  explicit Ended(Share counted) : share(std::move(counted)) {}
  bool settle() noexcept {
    ++asked;
    if (in_use) return false;
    share.give();
    return true;
  }
  Share share;
  bool in_use = true;
  int asked = 0;
};

TEST(Accounts, what_could_not_settle_is_asked_again_until_it_can) {
  const auto accounts = accounts_of({});
  auto gone = std::make_shared<Ended>(accounts->take(kAlice, {.bindings = 1}));
  const auto ended = std::make_shared<Ended>(accounts->take(kAlice, {.bindings = 1}));
  accounts->settle_later(kAlice, gone);
  accounts->settle_later(kAlice, ended);
  gone.reset();
  for (int i = 0; i < 3; ++i) accounts->settle_ended(kAlice);
  EXPECT_EQ(accounts->all(), (Holding{.bindings = 1}));
  ended->in_use = false;
  for (int i = 0; i < 3; ++i) accounts->settle_ended(kAlice);
  EXPECT_EQ(accounts->all(), Holding{});
  EXPECT_EQ(ended->asked, 4) << "not after it has settled";
}

TEST(Accounts, so_many_that_have_ended_are_asked_at_once_and_the_others_the_next_time) {
  const auto accounts = accounts_of({});
  std::vector<std::shared_ptr<Ended>> all;
  for (std::size_t i = 0; i < Accounts::kAskedAgain + 3; ++i) {
    all.push_back(std::make_shared<Ended>(accounts->take(kAlice, {.bindings = 1})));
    accounts->settle_later(kAlice, all.back());
  }
  accounts->settle_ended(kAlice);
  EXPECT_EQ(all[Accounts::kAskedAgain - 1]->asked, 1);
  EXPECT_EQ(all[Accounts::kAskedAgain]->asked, 0);
  for (const auto& one : all) one->in_use = false;
  accounts->settle_ended(kAlice);
  EXPECT_EQ(all[Accounts::kAskedAgain]->asked, 1);
  EXPECT_EQ(accounts->all(), (Holding{.bindings = 3}));
  accounts->settle_ended(kAlice);
  EXPECT_EQ(accounts->all(), Holding{});
}

TEST(Accounts, of_what_has_ended_that_of_the_user_who_wants_more_is_asked_first) {
  const auto accounts = accounts_of({.max_bindings_per_user = 1});
  std::vector<std::shared_ptr<Ended>> alices;
  for (std::size_t i = 0; i < Accounts::kAskedAgain; ++i) {
    alices.push_back(std::make_shared<Ended>(accounts->take(kAlice, {.bindings = 1})));
    accounts->settle_later(kAlice, alices.back());
  }
  const auto bobs = std::make_shared<Ended>(accounts->take(kBob, {.bindings = 1}));
  accounts->settle_later(kBob, bobs);
  bobs->in_use = false;
  accounts->settle_ended(kBob);
  EXPECT_TRUE(accounts->room(kBob, {.bindings = 1})) << "behind as many that cannot settle as are asked at once";
  EXPECT_EQ(alices.front()->asked, 1) << "then the others', in their order";
  EXPECT_EQ(alices.back()->asked, 0);
}

TEST(Accounts, a_share_outlives_the_server_that_counted_it) {
  auto accounts = accounts_of({});
  const std::weak_ptr<Accounts> seen = accounts;
  {
    const Share share = accounts->take(kAlice, {.sealed_clients = 1});
    accounts.reset();
    EXPECT_FALSE(seen.expired());
  }
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace lrpc::server
