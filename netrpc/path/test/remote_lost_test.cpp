// What a network does not carry: a call that is lost alone, and a binding of which its host never hears.
#include <gtest/gtest.h>

#include "remote_fixture.h"

namespace testing_netpath {
namespace {

TEST_F(TwoHosts, lose_a_call_whose_reply_cannot_be_carried_and_nothing_else) {
  auto client = import();
  ASSERT_TRUE(client) << client.error().message();
  network_.replies_too_long = true;
  EXPECT_EQ(client->Null().code(), Errc::call_lost);
  EXPECT_EQ(client->start().Null().finish().code(), Errc::call_lost);
  EXPECT_EQ(import().code(), Errc::remote_unavailable);
  const std::uint64_t before = network_.pings;
  EXPECT_TRUE(eventually([&] { return network_.pings >= before + 3; })) << "a keepalive that is lost ends nothing";
  network_.replies_too_long = false;
  EXPECT_TRUE(client->Null());
}

TEST_F(TwoHosts, drop_a_binding_of_which_its_host_has_not_heard_and_keep_the_others) {
  there_->stop_broker();
  auto options = there_options();
  options.forget = milliseconds(300);
  there_->start_broker(options);
  const auto bindings = [&] { return there_->broker().statistics().bindings; };
  EXPECT_TRUE(eventually([&] {  // not where this process, with both hosts, has just stood still for that long
    auto client = import();
    if (!client) return false;
    network_.lose_replies_to_binds = true;
    const bool lost = !import();
    network_.lose_replies_to_binds = false;
    if (!lost || bindings() < 2) return false;
    return eventually([&] { return bindings() < 2; }) && bindings() == 1 && client->Null().has_value();
  }));
}

}  // namespace
}  // namespace testing_netpath
