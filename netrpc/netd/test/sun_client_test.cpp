// What lrpc-netd's Sun RPC client refuses, and how much of the host's memory it takes.
#include "sun_clients.h"

namespace lrpc::netd::test {
namespace {

constexpr uid_t kOther = 1001;
constexpr uid_t kThird = 1002;

TEST_F(SunClients, import_and_call_nothing_while_memory_is_short) {
  const auto binding = bind(kUser);
  ASSERT_TRUE(binding) << binding.error().message();
  EXPECT_EQ(call(**binding), Errc::ok);
  const std::size_t sent = calls_->timeouts.size();
  short_of_memory_ = true;
  EXPECT_EQ(call(**binding), Errc::limit_reached);
  EXPECT_EQ(bind(kUser).code(), Errc::limit_reached);
  EXPECT_EQ(calls_->timeouts.size(), sent) << "nothing is sent";
  short_of_memory_ = false;
  EXPECT_EQ(call(**binding), Errc::ok);
}

TEST_F(SunClients, of_one_user_have_half_of_the_share_of_buffers_and_leave_the_rest_to_others) {
  const auto mine = bind(kUser).value();
  const auto others = bind(kOther).value();
  const auto third = bind(kThird).value();
  calls_->takes = 1s;
  std::vector<Errc> outcomes(6, Errc::call_failed);
  // Each of these runs while the call before it waits.
  engine_.meanwhile = {
      [&] { outcomes[1] = call(*mine); },
      [&] {
        outcomes[2] = call(*mine);  // is not sent, so it does not wait
        outcomes[3] = call(*others);
      },
      [&] {
        outcomes[4] = call(*others);  // refused: beside the first user, this user's share is one
        outcomes[5] = call(*third);
      },
  };
  outcomes[0] = call(*mine);
  EXPECT_TRUE(engine_.meanwhile.empty());
  EXPECT_EQ(outcomes,
            (std::vector<Errc>{Errc::ok, Errc::ok, Errc::limit_reached, Errc::ok, Errc::limit_reached, Errc::ok}));
  EXPECT_EQ(call(*mine), Errc::ok) << "what has ended takes no buffers";
  EXPECT_EQ(call(*third), Errc::ok);
}

TEST_F(SunClients, fail_with_limit_reached_when_the_host_has_no_buffer) {
  const auto mine = bind(kUser).value();
  std::vector<netrpc::Message> all;
  {
    const netrpc::Shepherd inside(host_->monitor());
    for (;;) {
      netrpc::Message one = netrpc::Message::make(host_->pool(), 1);
      if (!one.allocated()) break;
      all.push_back(std::move(one));
    }
  }
  EXPECT_EQ(call(*mine), Errc::limit_reached);
  const auto asked = bind(kUser, "anywhere");
  EXPECT_EQ(asked.code(), Errc::limit_reached) << asked.error().message();
  {
    const netrpc::Shepherd inside(host_->monitor());
    all.clear();
  }
  EXPECT_EQ(call(*mine), Errc::ok);
}

}  // namespace
}  // namespace lrpc::netd::test
