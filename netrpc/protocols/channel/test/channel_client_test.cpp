// CHANNEL's client, packet by packet.
#include "netrpc/protocols/channel/test/channel_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
namespace flags = channel_flags;

TEST(ChannelTest, the_first_call_to_a_host_asks_for_its_boot_identifier_and_the_next_takes_two_packets) {
  ChannelPair pair;
  TestCall call;
  pair.call(call, "hello");
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kBootQuery);
  pair.wire.deliver_next();
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kBootAnswer);
  EXPECT_EQ(pair.wire.packets[0].header().boot_id, pair.wire[1].host.boot_id());
  EXPECT_TRUE(pair.server->executed.empty());
  pair.wire.deliver_next();
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kRequest);
  EXPECT_EQ(pair.wire.packets[0].header().peer_boot_id, pair.wire[1].host.boot_id());
  EXPECT_EQ(pair.wire.packets[0].data(), "hello");
  pair.wire.deliver_all();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, "hello");

  TestCall second;
  pair.call(second, "again");
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  pair.wire.deliver_next();
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kReply);
  pair.wire.deliver_next();
  EXPECT_EQ(second.reply, "again");
  EXPECT_TRUE(pair.wire.packets.empty());
}

TEST(ChannelTest, a_second_call_on_a_busy_channel_is_refused) {
  ChannelPair pair;
  TestCall first;
  TestCall second;
  pair.call(first, "first");
  pair.call(second, "second");
  EXPECT_EQ(second.outcome, Errc::limit_reached);
  pair.wire.deliver_all();
  EXPECT_EQ(first.reply, "first");
  EXPECT_EQ(pair.server->executed.size(), 1U);
}

TEST(ChannelTest, a_refused_request_fails_its_call_at_once) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "refused");
  pair.wire.deliver_all();
  EXPECT_EQ(pair.server->refuse_next(), Errc::ok);
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(call.completions, 1);
  pair.server->at_once = true;
  pair.expect_ok("next");
}

TEST(ChannelTest, a_lost_request_is_sent_again) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "lost");
  pair.wire.take();
  pair.wire.pass(60ms);
  ASSERT_GE(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kRequest);
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "lost");
  EXPECT_EQ(pair.executions("lost"), 1U);
}

TEST(ChannelTest, a_lost_reply_is_repeated_without_executing_again) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "reply lost");
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kReply);
  pair.wire.pass(60ms);
  pair.wire.deliver_all();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.reply, "reply lost");
  EXPECT_EQ(pair.executions("reply lost"), 1U);
}

}  // namespace
}  // namespace lrpc::netrpc
