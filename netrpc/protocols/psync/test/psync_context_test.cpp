// PSYNC: the context of a message, and how the protocol above can ask for it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lrpc/netrpc/session_cache.h"
#include "talking_group.h"

namespace lrpc::netrpc::psync {
namespace {

using namespace std::chrono_literals;

/// Asks a session for the context of `message`; without one, of the last message delivered or pushed through the
/// session. The session is the host's own one, or that to another member.
control::Context context_of(Session& session, const control::MessageName& message = {}) {
  control::Context asked;
  asked.message = message;
  return test::asked(session, asked);
}

TEST(Psync, says_what_directly_precedes_a_message) {
  Group group(3);
  EXPECT_EQ(group.push(0), Errc::ok);  // a question
  group.net.world.run_for(5ms);
  EXPECT_EQ(group.push(1), Errc::ok);  // and two answers, each sent without knowing the other
  EXPECT_EQ(group.push(2), Errc::ok);
  const auto name = [&](std::size_t host, std::uint32_t sequence) {
    return control::MessageName{group.net.address(host), group.net[host].host().boot_id(), sequence};
  };
  {
    const Shepherd inside(group.net[1].monitor());
    const control::Context answer = context_of(*group.members[1].session);
    EXPECT_EQ(answer.message, name(1, 1));
    ASSERT_EQ(answer.count, 1U);
    EXPECT_EQ(answer.before[0], name(0, 1));
    EXPECT_TRUE(answer.delivered);
    EXPECT_EQ(answer.lacking, 2U);
    EXPECT_EQ(context_of(*group.members[1].session, answer.before[0]).count, 0U) << "it was the first";
  }
  group.net.world.run_for(5ms);
  EXPECT_EQ(group.push(0), Errc::ok);
  const Shepherd inside(group.net[0].monitor());
  const control::Context last = context_of(*group.members[0].session);
  ASSERT_EQ(last.count, 2U);
  EXPECT_TRUE((last.before[0] == name(1, 1) && last.before[1] == name(2, 1)) ||
              (last.before[0] == name(2, 1) && last.before[1] == name(1, 1)));
  control::Context unknown;
  unknown.message = name(0, 7);
  EXPECT_EQ(control::ask(*group.members[0].session, unknown), Errc::name_unknown);
}

TEST(Psync, names_a_message_to_whoever_is_given_it) {
  Group group(2);
  EXPECT_EQ(group.push(0), Errc::ok);
  bool asked = false;
  group.members[1].talker->given = [&](Session& from) {
    asked = true;
    const control::Context context = context_of(from);
    EXPECT_EQ(context.message.host, group.net.address(0));
    EXPECT_EQ(context.message.sequence, 1U);
    EXPECT_TRUE(context.delivered);
  };
  group.net.world.run_for(1ms);
  EXPECT_TRUE(asked);
  group.net.world.run_for(1s);
  control::Context settled;
  const Shepherd inside(group.net[0].monitor());
  EXPECT_EQ(control::ask(*group.members[0].session, settled), Errc::name_unknown) << "all have it";
}

TEST(Psync, says_how_many_messages_are_outstanding) {
  Group group(2, {}, {.window = 64, .interval = 20ms, .silence = 10s});
  const auto outstanding = [&](std::size_t who) {
    const Shepherd inside(group.net[who].monitor());
    return test::asked<control::Outstanding>(*group.members[who].session);
  };
  EXPECT_EQ(group.push(0), Errc::ok);  // by now they know each other
  group.net.world.run_for(1s);
  EXPECT_EQ(outstanding(0).elsewhere, 0U);
  group.net.world.set_links({.loss = 1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(1ms);
  group.net.world.set_links({});
  EXPECT_EQ(outstanding(0).elsewhere, 3U);
  EXPECT_EQ(outstanding(1).here, 0U) << "nobody has told it yet";
  EXPECT_EQ(group.push(0), Errc::ok);
  group.net.world.run_for(15us);  // the fourth message has arrived, and waits for three others
  EXPECT_EQ(outstanding(1).here, 4U);
  group.net.world.run_for(5s);
  EXPECT_EQ(outstanding(0).elsewhere, 0U);
  EXPECT_EQ(outstanding(1).here, 0U);
}

}  // namespace
}  // namespace lrpc::netrpc::psync
