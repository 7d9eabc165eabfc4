// CHANNEL when packets are lost, late, duplicated or reordered, and when the server is slow.
#include "netrpc/protocols/channel/test/channel_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
namespace flags = channel_flags;

std::size_t count_flags(const PacketWire& wire, std::uint16_t flag) {
  return static_cast<std::size_t>(std::count_if(wire.packets.begin(), wire.packets.end(),
                                                [flag](const auto& packet) { return packet.flags() == flag; }));
}

TEST(ChannelLossTest, a_slow_server_acknowledges_a_repeated_request_and_is_probed_without_data_from_then_on) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "slow");
  pair.wire.deliver_next();
  pair.wire.pass(600us);
  ASSERT_EQ(pair.wire.packets.size(), 1U);
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kRequest);
  EXPECT_EQ(pair.wire.packets[0].data(), "slow");
  pair.wire.deliver_all();
  std::size_t requests = 0;
  std::size_t probes = 0;
  for (int i = 0; i < 200; ++i) {  // 20 s: four times the give-up time for a silent peer
    pair.wire.pass(100ms);
    requests += count_flags(pair.wire, flags::kRequest);
    probes += count_flags(pair.wire, flags::kPleaseAck);
    pair.wire.deliver_all();
  }
  EXPECT_EQ(call.completions, 0);
  EXPECT_EQ(requests, 0U);
  EXPECT_GT(probes, 10U);
  EXPECT_LT(probes, 100U) << "probes are not backed off";
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, "slow");
  EXPECT_EQ(pair.executions("slow"), 1U);
}

TEST(ChannelLossTest, the_first_request_to_a_host_may_be_lost_and_so_may_the_query_before_it) {
  ChannelPair pair;
  TestCall call;
  pair.call(call, "first");
  EXPECT_EQ(pair.wire.take().flags(), flags::kBootQuery);
  pair.wire.pass(60ms);
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kBootAnswer);
  pair.wire.pass(110ms);
  pair.wire.deliver_next();
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kRequest);
  pair.wire.pass(60ms);
  ASSERT_FALSE(pair.wire.packets.empty());
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kRequest);
  EXPECT_EQ(pair.wire.packets[0].data(), "first");
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "first");
  EXPECT_EQ(pair.executions("first"), 1U);
}

TEST(ChannelLossTest, a_lost_acknowledgement_costs_another_request_that_is_not_executed) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "slow");
  pair.wire.deliver_next();
  pair.wire.pass(600us);
  pair.wire.deliver_next();                          // the repeated request
  EXPECT_EQ(pair.wire.take().flags(), flags::kAck);  // is lost
  pair.wire.pass(10ms);
  EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kRequest);
  pair.wire.deliver_all();
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "slow");
  EXPECT_EQ(pair.executions("slow"), 1U);
}

TEST(ChannelLossTest, a_reply_that_is_lost_after_an_acknowledgement_is_fetched_by_a_probe) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "slow");
  pair.wire.deliver_next();
  pair.wire.pass(1ms);
  pair.wire.deliver_all();
  pair.server->answer_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kReply);
  pair.wire.pass(20ms);
  EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kPleaseAck);
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "slow");
  EXPECT_EQ(pair.executions("slow"), 1U);
}

TEST(ChannelLossTest, everything_may_arrive_twice) {
  ChannelPair pair;
  for (int i = 0; i < 50; ++i) {
    const std::string text = "call " + std::to_string(i);
    TestCall call;
    pair.call(call, text);
    while (!pair.wire.packets.empty()) {
      const PacketWire::Packet packet = pair.wire.take();
      pair.wire.deliver(packet);
      pair.wire.deliver(packet);
    }
    EXPECT_EQ(call.completions, 1);
    EXPECT_EQ(call.reply, text);
    EXPECT_EQ(pair.executions(text), 1U);
  }
  EXPECT_GT(ChannelPair::statistics(*pair.server_channel).duplicates, 40U);
}

TEST(ChannelLossTest, a_late_duplicate_of_an_old_request_is_never_executed_again) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "first");
  const PacketWire::Packet old = pair.wire.packets.at(0);
  pair.wire.deliver_all();
  for (int i = 0; i < 3; ++i) pair.expect_ok("later");
  pair.wire.pass(40s);
  pair.wire.deliver(old);
  EXPECT_TRUE(pair.wire.packets.empty()) << "nobody waits for an answer to it";
  EXPECT_EQ(pair.executions("first"), 1U);
}

TEST(ChannelLossTest, a_late_duplicate_is_not_executed_after_its_channel_was_closed_and_opened_again) {
  ChannelPair pair;
  pair.expect_ok("first");
  TestCall call;
  pair.call(call, "second");
  const PacketWire::Packet old = pair.wire.packets.at(0);
  pair.wire.deliver_all();
  const std::uint16_t number = pair.session->participants().remote.channel;
  pair.session = {};
  pair.wire.deliver(old);
  pair.session = pair.open();
  EXPECT_EQ(pair.session->participants().remote.channel, number);
  pair.wire.deliver(old);
  pair.wire.packets.clear();
  pair.expect_ok("third");
  pair.wire.deliver(old);
  EXPECT_EQ(pair.executions("second"), 1U);
  EXPECT_EQ(pair.executions("third"), 1U);
}

TEST(ChannelLossTest, an_old_reply_does_not_answer_a_new_request) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "first");
  pair.wire.deliver_next();
  const PacketWire::Packet old = pair.wire.packets.at(0);
  pair.wire.deliver_all();
  TestCall next;
  pair.call(next, "second");
  pair.wire.deliver(old);
  EXPECT_EQ(next.completions, 0);
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "second");
}

TEST(ChannelLossTest, a_silent_peer_is_given_up_after_several_tries_and_the_channel_can_be_used_again) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "into the void");
  pair.wire.pass(4900ms);
  EXPECT_EQ(call.completions, 0);
  pair.wire.pass(1500ms);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(call.completions, 1);
  EXPECT_GE(pair.wire.packets.size(), 5U);
  EXPECT_LE(pair.wire.packets.size(), 30U);
  pair.wire.packets.clear();
  pair.expect_ok("back");
}

TEST(ChannelLossTest, a_host_that_was_never_heard_of_is_unreachable) {
  ChannelPair pair;
  TestCall call;
  pair.call(call, "anybody");
  pair.wire.pass(7s);
  EXPECT_EQ(call.outcome, Errc::host_unreachable);
  for (const auto& packet : pair.wire.packets) EXPECT_EQ(packet.flags(), flags::kBootQuery);
}

TEST(ChannelLossTest, a_host_that_this_one_had_no_memory_to_ask_is_not_said_to_be_unreachable) {
  ChannelPair pair;
  pair.wire[0].end.refuses = Errc::limit_reached;
  TestCall call;
  pair.call(call, "anybody");
  pair.wire.pass(7s);
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.outcome, Errc::limit_reached);
  pair.wire[0].end.refuses = Errc::ok;
  pair.expect_ok("it is asked now");
}

TEST(ChannelLossTest, a_timeout_aborts_the_call_and_the_channel_is_free_when_the_server_has_answered) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "slow", 3ms);
  pair.wire.deliver_next();
  pair.wire.pass(2900us);
  EXPECT_EQ(call.completions, 0);
  pair.wire.pass(200us);
  EXPECT_EQ(call.outcome, Errc::call_aborted);
  TestCall refused;
  pair.call(refused, "too early");
  EXPECT_EQ(refused.outcome, Errc::limit_reached);
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(call.completions, 1);
  pair.server->at_once = true;
  pair.expect_ok("next");
  EXPECT_EQ(pair.executions("slow"), 1U);
}

TEST(ChannelLossTest, a_call_that_is_aborted_before_its_request_arrives_frees_the_channel_by_a_probe) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "lost", 1500us);
  const PacketWire::Packet late = pair.wire.take();
  pair.wire.pass(1600us);
  EXPECT_EQ(call.outcome, Errc::call_aborted);
  pair.wire.packets.clear();
  pair.wire.pass(20ms);
  ASSERT_FALSE(pair.wire.packets.empty());
  EXPECT_EQ(pair.wire.packets[0].flags(), flags::kPleaseAck) << "data is sent for nobody";
  pair.wire.deliver_all();
  // The request arrives late. It is executed once, and the next call waits until that execution ends.
  pair.server->at_once = false;
  pair.wire.deliver(late);
  pair.wire.deliver(late);
  pair.wire.packets.clear();
  TestCall next;
  pair.call(next, "next");
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.packets.at(0).flags(), flags::kInProgress);
  pair.wire.deliver_all();
  pair.server->answer_next();
  pair.server->at_once = true;
  pair.wire.pass(20ms);
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
  EXPECT_EQ(pair.executions("lost"), 1U);
  EXPECT_EQ(pair.executions("next"), 1U);
}

TEST(ChannelLossTest, a_timeout_while_the_boot_identifier_is_asked_for_leaves_nothing_behind) {
  ChannelPair pair;
  TestCall call;
  pair.call(call, "never sent", 10ms);
  pair.wire.pass(11ms);
  EXPECT_EQ(call.outcome, Errc::call_aborted);
  pair.wire.deliver_all();
  EXPECT_TRUE(pair.server->executed.empty());
  pair.expect_ok("sent");
}

TEST(ChannelLossTest, a_cancelled_call_is_not_completed) {
  ChannelPair pair;
  TestCall unsent;
  pair.call(unsent, "unsent");
  pair.cancel(unsent);
  pair.wire.deliver_all();
  EXPECT_EQ(unsent.completions, 0);
  EXPECT_TRUE(pair.server->executed.empty());

  pair.expect_ok("warm");
  TestCall sent;
  pair.call(sent, "sent");
  pair.cancel(sent);
  pair.wire.deliver_all();
  EXPECT_EQ(sent.completions, 0);
  EXPECT_EQ(pair.executions("sent"), 1U);
  pair.expect_ok("next");
}

TEST(ChannelLossTest, closing_a_session_cancels_its_call) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "outstanding");
  pair.session = {};
  pair.wire.deliver_all();
  pair.wire.pass(10s);
  EXPECT_EQ(call.completions, 0);
  pair.session = pair.open();
  pair.wire.packets.clear();
  pair.expect_ok("next");
}

TEST(ChannelLossTest, sequence_numbers_may_wrap_around) {
  ChannelPair pair({.first_sequence = 0xfffffffdULL});
  for (int i = 0; i < 10; ++i) {
    const std::string text = "call " + std::to_string(i);
    TestCall each;
    pair.call(each, text);
    const PacketWire::Packet request = pair.wire.packets.at(0);
    while (!pair.wire.packets.empty()) {
      const PacketWire::Packet packet = pair.wire.take();
      pair.wire.deliver(packet);
      pair.wire.deliver(packet);
    }
    EXPECT_EQ(each.reply, text);
    EXPECT_EQ(pair.executions(text), 1U);
    pair.wire.deliver(request);
    pair.wire.packets.clear();
    EXPECT_EQ(pair.executions(text), 1U);
  }
}

TEST(ChannelLossTest, a_request_is_remembered_for_as_long_as_its_client_may_send_it_and_the_last_copy_may_live) {
  ChannelPair pair({.give_up = 2s, .packet_life = 4s, .reply_life = 1s});
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "once");
  pair.wire.deliver_next();
  pair.wire.packets.clear();  // the reply is lost, and later packets of the client are delayed for a long time
  pair.wire.pass(2s);
  ASSERT_FALSE(pair.wire.packets.empty());
  const PacketWire::Packet last = pair.wire.packets.back();
  EXPECT_EQ(last.flags(), flags::kRequest);
  pair.wire.pass(3900ms);
  pair.wire.packets.clear();
  pair.wire.deliver(last);
  EXPECT_EQ(pair.executions("once"), 1U);
}

TEST(ChannelLossTest, a_channel_that_would_send_for_longer_than_others_remember_is_refused) {
  PacketWire wire;
  const ProtocolKind kind = channel_kind();
  const auto make = [&](std::string give_up) {
    Options options;
    options.set("give_up", std::move(give_up));
    return kind.make({wire[0].host, "channel", {&wire[0].end}, options}).code();
  };
  EXPECT_EQ(make("31s"), Errc::invalid_argument);
  EXPECT_EQ(make("30s"), Errc::ok);
}

}  // namespace
}  // namespace lrpc::netrpc
