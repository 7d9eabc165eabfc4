// Who may have how many sealed clients served.
#include "trap_account.h"

#include <gtest/gtest.h>

#include <optional>
#include "users.h"

namespace lrpc::server {
namespace {

TEST(TrapAccount, one_user_has_its_part_and_leaves_the_rest_to_others) {
  const auto account = std::make_shared<TrapAccount>(ServerOptions{.max_estacks = 3, .max_estacks_per_user = 2});
  auto first = TrapAccount::take(account, kAlice);
  auto second = TrapAccount::take(account, kAlice);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(TrapAccount::take(account, kAlice).code(), Errc::limit_reached);
  auto of_bob = TrapAccount::take(account, kBob);
  ASSERT_TRUE(of_bob);
  EXPECT_EQ(TrapAccount::take(account, kBob).code(), Errc::limit_reached) << "the server has no more";
  second->give();
  second->give();  // once only
  EXPECT_TRUE(TrapAccount::take(account, kBob));
  EXPECT_TRUE(TrapAccount::take(account, kAlice));
}

TEST(TrapAccount, a_share_outlives_the_server_that_counted_it) {
  auto account = std::make_shared<TrapAccount>(ServerOptions{.max_estacks = 1});
  const std::weak_ptr<TrapAccount> seen = account;
  {
    const auto share = TrapAccount::take(account, kAlice);
    account.reset();
    EXPECT_FALSE(seen.expired());
  }
  EXPECT_TRUE(seen.expired());
}

}  // namespace
}  // namespace lrpc::server
