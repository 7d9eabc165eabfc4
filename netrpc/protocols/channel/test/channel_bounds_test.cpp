// CHANNEL: what state peers can make a server keep, and which of their packets it believes.
#include "netrpc/protocols/channel/test/channel_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
namespace flags = channel_flags;

TEST(ChannelBoundsTest, replies_that_nobody_acknowledges_take_a_bounded_part_of_the_memory) {
  ChannelPair pair({.memory = 100'000});
  const std::string large(18'000, 'x');
  std::vector<SessionRef> sessions;
  for (int i = 0; i < 10; ++i) {
    sessions.push_back(pair.open());
    TestCall call;
    pair.call(*sessions.back(), call, large);
    pair.wire.deliver_all();
    EXPECT_EQ(call.reply, large);
  }
  EXPECT_EQ(pair.wire[1].host.pool().in_use(), 2U);

  // A reply that was not kept cannot be sent again.
  TestCall lost;
  pair.call(*sessions.back(), lost, large);
  pair.wire.deliver_next();
  pair.wire.take();
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(lost.outcome, Errc::call_failed);
  EXPECT_EQ(pair.executions(large), 11U);

  // Once other replies are acknowledged, there is room again.
  for (int i = 0; i < 2; ++i) {
    TestCall call;
    pair.call(*sessions[static_cast<std::size_t>(i)], call, "x");
    pair.wire.deliver_all();
  }
  TestCall repeated;
  pair.call(*sessions.back(), repeated, large);
  pair.wire.deliver_next();
  pair.wire.take();
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(repeated.reply, large);

  sessions.clear();
  pair.session = {};
  pair.wire.pass(30s, 100ms);
  EXPECT_EQ(pair.wire[1].host.pool().in_use(), 0U);
}

TEST(ChannelBoundsTest, short_replies_in_large_buffers_count_for_what_they_take) {
  ChannelPair pair({.memory = 200'000});
  pair.server->at_once = false;
  Host& host = pair.wire[1].host;
  std::vector<SessionRef> sessions;
  for (int i = 0; i < 20; ++i) {
    sessions.push_back(pair.open());
    TestCall call;
    pair.call(*sessions.back(), call, "x");
    pair.wire.deliver_all();
    {
      const Shepherd inside(host.monitor());
      Message& reply = pair.server->pending.front().second;
      reply = Message::make(host.pool(), 16'000);
      reply.truncate(2000);
    }
    pair.server->answer_next();
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  }
  EXPECT_LE(host.pool().in_use() * BufferPool::kSizes[2], 200'000U);
}

TEST(ChannelBoundsTest, replies_that_one_host_does_not_acknowledge_cost_others_no_call) {
  ChannelPair pair({.memory = 200'000}, 3);
  Host& greedy = pair.wire[2].host;
  const auto channel = make_channel(greedy, "channel", pair.wire[2].end, pair.options);
  SinkProtocol user(greedy);
  const std::string large(18'000, 'x');
  std::vector<SessionRef> sessions;
  for (int i = 0; i < 20; ++i) {
    TestCall call;
    {
      const Shepherd inside(greedy.monitor());
      ParticipantSet participants{ChannelPair::kNumber, {}, {}};
      participants.remote.host = PacketWire::address(1);
      sessions.push_back(*channel->open(user, participants));
      sessions.back()->call(Message::copy_of(greedy.pool(), std::as_bytes(std::span(large))), call, kNoLimit);
    }
    pair.wire.deliver_all();
    EXPECT_EQ(call.reply, large);
  }
  pair.expect_ok("warm");
  TestCall lost;
  pair.call(lost, large);
  pair.wire.deliver_next();
  pair.wire.take();
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(lost.outcome, Errc::ok);
  EXPECT_EQ(lost.reply, large);
  EXPECT_EQ(pair.executions(large), 21U);
}

TEST(ChannelBoundsTest, a_reply_that_the_link_no_longer_carries_loses_its_call_at_once) {
  ChannelPair pair;
  const std::string large(2000, 'x');
  pair.expect_ok(large);
  pair.wire[1].end.maximum = 1000;
  TestCall refused;
  pair.call(refused, large);
  pair.wire.deliver_all();
  EXPECT_EQ(refused.outcome, Errc::call_lost);
  EXPECT_EQ(refused.completions, 1);
  pair.expect_ok("small");

  // The same for a reply that was sent before the link shrank, and was lost.
  pair.wire[1].end.maximum = 20000;
  TestCall lost;
  pair.call(lost, large);
  pair.wire.deliver_next();
  pair.wire.take();
  pair.wire[1].end.maximum = 1000;
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(lost.outcome, Errc::call_lost);
  EXPECT_EQ(pair.executions(large), 3U);
  pair.expect_ok("small");

  // And for a reply whose FAIL packet is lost: the client is told only the second time.
  TestCall told;
  pair.call(told, large);
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.take().flags(), flags::kFail);
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(told.outcome, Errc::call_lost);
  EXPECT_EQ(pair.executions(large), 4U);
}

TEST(ChannelBoundsTest, a_word_that_a_reply_is_lost_ends_no_call_but_its_own) {
  ChannelPair pair;
  pair.wire[1].end.maximum = 1000;
  TestCall lost;
  pair.call(lost, std::string(2000, 'x'));
  pair.wire.deliver_all();
  pair.call(lost, std::string(2000, 'x'));
  pair.wire.deliver_next();
  PacketWire::Packet word = pair.wire.take();
  EXPECT_EQ(word.flags(), flags::kFail);
  pair.wire.deliver(word);
  EXPECT_EQ(lost.outcome, Errc::call_lost);

  pair.server->at_once = false;
  TestCall next;
  pair.call(next, "next");
  pair.wire.deliver_next();
  pair.wire.deliver(word);
  word.bytes[11] = static_cast<char>(word.bytes[11] + 1);  // the sequence number
  for (const std::size_t at : {3U, 7U, 17U, 21U}) {        // channel, protocol, the server's life, the client's
    PacketWire::Packet forged = word;
    forged.bytes[at] = static_cast<char>(forged.bytes[at] ^ 1);
    pair.wire.deliver(forged);
  }
  EXPECT_FALSE(next.done());
  pair.wire.deliver(word);
  EXPECT_EQ(next.outcome, Errc::call_lost);
}

/// Delivers packets of the client through another lower session. `host`: whose session it is; by default the layers
/// below do not know.
class OtherWay {
 public:
  explicit OtherWay(ChannelPair& pair, HostAddress host = {}) : pair_(pair), end_(pair.wire[1].host) {
    ParticipantSet participants;
    participants.remote.host = host;
    session_ = SessionRef(new End(end_, *pair.server_channel, participants));
  }
  void deliver(const PacketWire::Packet& packet) {
    Host& host = pair_.wire[1].host;
    const Shepherd inside(host.monitor());
    pair_.server_channel->demux(*session_, Message::copy_of(host.pool(), std::as_bytes(std::span(packet.bytes))));
  }

 private:
  struct End final : Session {
    using Session::Session;
    [[nodiscard]] Errc push(Message /*message*/) noexcept override { return Errc::ok; }
  };
  ChannelPair& pair_;
  SinkProtocol end_;
  SessionRef session_;
};

TEST(ChannelBoundsTest, a_request_that_comes_through_two_lower_sessions_is_executed_once) {
  ChannelPair pair;
  OtherWay other(pair);
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "once");
  const PacketWire::Packet request = pair.wire.packets.at(0);
  pair.wire.deliver_all();
  other.deliver(request);
  EXPECT_EQ(pair.executions("once"), 1U);

  // Nor is it executed when the client has rebooted meanwhile.
  pair.reboot_client();
  pair.expect_ok("second life");
  other.deliver(request);
  EXPECT_EQ(pair.executions("once"), 1U);

  // The state kept for it is dropped like all other idle state.
  pair.session = {};
  pair.wire.pass(160s, 100ms);
  EXPECT_EQ(ChannelPair::statistics(*pair.server_channel).state, 0U);
  pair.session = pair.open();
  TestCall last;
  pair.call(last, "last");
  while (pair.wire.packets.at(0).flags() != flags::kRequest) pair.wire.deliver_next();
  other.deliver(pair.wire.packets.at(0));
  pair.wire.deliver_all();
  EXPECT_EQ(pair.executions("last"), 1U);
}

TEST(ChannelBoundsTest, requests_of_former_lives_count_for_their_host_while_they_are_executed) {
  ChannelPair pair({.channels_per_peer = 8});
  pair.server->at_once = false;
  const auto refused_in_a_new_life = [&pair](std::string_view text) {
    pair.reboot_client();
    TestCall call;
    pair.call(call, text);
    pair.wire.deliver_all();
    if (!call.done()) pair.cancel(call);
    return call.outcome == Errc::call_failed;
  };
  for (int life = 0; life < 20; ++life) {
    EXPECT_EQ(refused_in_a_new_life("x"), life >= 8);
    if (life < 10) continue;
    pair.session = {};  // also when all idle state has been dropped
    pair.wire.pass(400s, 1s);
    pair.wire.packets.clear();
  }
  EXPECT_EQ(pair.executions("x"), 8U);

  {
    const Shepherd inside(pair.wire[1].host.monitor());
    pair.server->pending.clear();
  }
  pair.server->at_once = true;
  EXPECT_FALSE(refused_in_a_new_life("again"));
  EXPECT_EQ(pair.executions("again"), 1U);
}

/// Makes a call that the server will hold, and returns its packet, which is not delivered yet.
PacketWire::Packet call_that_goes_on(ChannelPair& pair, TestCall& call) {
  pair.expect_ok("warm");
  pair.server->at_once = false;
  pair.call(call, "going on");
  return pair.wire.packets.at(0);
}

TEST(ChannelBoundsTest, one_packet_with_another_boot_identifier_does_not_cut_a_client_off) {
  ChannelPair pair;
  TestCall call;
  PacketWire::Packet forged = call_that_goes_on(pair, call);
  pair.wire.deliver_next();
  for (int i = 1; i < 10; ++i) {
    forged.bytes[17] = static_cast<char>(forged.bytes[17] + i);  // the client's boot identifier
    pair.wire.deliver(forged);
    PacketWire::Packet answer = forged;  // nor do boot answers that match no question
    answer.bytes[0] = 0;
    answer.bytes[1] = static_cast<char>(flags::kBootAnswer);
    answer.bytes[2] = answer.bytes[3] = 0;
    pair.wire.deliver(answer);
  }
  EXPECT_EQ(pair.executions("going on"), 1U);
  pair.wire.deliver_all();
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "going on");
  pair.server->at_once = true;
  pair.expect_ok("and on");
}

TEST(ChannelBoundsTest, one_packet_through_a_new_lower_session_does_not_cut_a_client_off) {
  ChannelPair pair;
  OtherWay other(pair, PacketWire::address(0));
  TestCall call;
  PacketWire::Packet forged = call_that_goes_on(pair, call);
  pair.wire.deliver_all();
  forged.bytes[17] = static_cast<char>(forged.bytes[17] + 1);  // the client's boot identifier
  other.deliver(forged);
  EXPECT_EQ(pair.executions("going on"), 1U);
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "going on");
}

TEST(ChannelBoundsTest, one_packet_that_says_that_the_server_has_rebooted_does_not_fail_a_call) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "going on");
  const PacketWire::Packet request = pair.wire.take();
  pair.wire.deliver(request);
  const PacketWire::Packet reply = pair.wire.take();
  PacketWire::Packet forged = reply;
  forged.bytes[1] = static_cast<char>(flags::kRebooted);
  forged.bytes[17] = static_cast<char>(forged.bytes[17] + 1);  // the server's boot identifier
  pair.wire.deliver(forged);
  pair.wire.deliver_all();
  EXPECT_EQ(call.completions, 0);
  pair.wire.deliver(reply);
  EXPECT_EQ(call.reply, "going on");
}

TEST(ChannelBoundsTest, a_client_that_has_rebooted_is_asked_once_and_loses_no_time_by_it) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.reboot_client();
  pair.expect_ok("second life");  // although no timer has run
  EXPECT_TRUE(pair.wire.packets.empty());
  pair.expect_ok("and on");
}

}  // namespace
}  // namespace lrpc::netrpc
