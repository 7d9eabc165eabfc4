// CHANNEL when hosts reboot, when peers are hostile, and what state is left in the end.
#include "netrpc/protocols/channel/protocol.h"
#include "netrpc/protocols/channel/test/channel_pair.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
namespace flags = channel_flags;

TEST(ChannelLivesTest, a_server_that_has_rebooted_does_not_execute_what_was_meant_for_its_former_life) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "once");
  const PacketWire::Packet request = pair.wire.packets.at(0);
  pair.wire.deliver_next();
  EXPECT_EQ(pair.executions("once"), 1U);
  pair.wire.packets.clear();  // the reply is lost, and the server crashes
  pair.reboot_server();
  pair.wire.pass(60ms);
  ASSERT_FALSE(pair.wire.packets.empty());
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.packets.back().flags(), flags::kRebooted);
  pair.wire.deliver_all();
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  pair.wire.deliver(request);
  EXPECT_TRUE(pair.server->executed.empty());
  EXPECT_EQ(pair.wire[0].host.peers().boot_id(PacketWire::address(1)), pair.wire[1].host.boot_id());
  pair.wire.packets.clear();
  pair.expect_ok("new life");
}

TEST(ChannelLivesTest, a_reboot_that_one_call_learns_of_fails_all_calls_to_the_host) {
  ChannelPair pair;
  pair.expect_ok("warm");
  SessionRef other = pair.open();
  TestCall waiting;
  pair.server->at_once = false;
  pair.call(*other, waiting, "other");
  pair.wire.deliver_next();
  pair.reboot_server();
  TestCall call;
  pair.call(call, "call");
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_EQ(waiting.outcome, Errc::call_failed);
  EXPECT_EQ(waiting.completions, 1);
}

TEST(ChannelLivesTest, a_peer_that_others_know_to_have_rebooted_fails_its_calls) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "waiting");
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    pair.wire[0].host.peers().heard(PacketWire::address(1), 4711);
  }
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

TEST(ChannelLivesTest, channels_that_ask_for_a_life_go_on_when_another_protocol_has_heard_of_it) {
  ChannelPair pair;
  TestCall asking;
  pair.call(asking, "asking");
  pair.wire.packets.clear();  // the question is lost
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    pair.wire[0].host.peers().heard(PacketWire::address(1), pair.wire[1].host.boot_id());
  }
  const SessionRef later = pair.open();  // learns the life that is known
  TestCall call;
  pair.call(*later, call, "later");
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::ok);
  pair.wire.pass(60ms);
  pair.wire.deliver_all();
  EXPECT_EQ(asking.completions, 1);
  EXPECT_EQ(asking.outcome, Errc::ok);
}

TEST(ChannelLivesTest, a_client_that_has_rebooted_starts_anew_and_its_former_life_is_not_heard_any_more) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "first life");
  const PacketWire::Packet executed = pair.wire.take();
  pair.wire.deliver(executed);
  pair.wire.packets.clear();
  pair.cancel(call);
  PacketWire::Packet late = executed;  // as if it had another sequence number, and had never arrived
  late.bytes[11] = static_cast<char>(late.bytes[11] + 5);
  pair.reboot_client();
  pair.expect_ok("second life");
  const std::size_t before = pair.server->executed.size();
  pair.wire.deliver(executed);
  pair.wire.deliver(late);
  EXPECT_EQ(pair.server->executed.size(), before);
  EXPECT_EQ(pair.wire[1].host.peers().boot_id(PacketWire::address(0)), pair.wire[0].host.boot_id());
  pair.expect_ok("and on");
}

TEST(ChannelLivesTest, a_reply_for_a_client_that_has_rebooted_meanwhile_goes_nowhere) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "former");
  pair.wire.deliver_next();
  pair.reboot_client();
  TestCall next;
  pair.call(next, "next");
  pair.wire.deliver_all();
  ASSERT_EQ(pair.server->pending.size(), 2U);
  pair.server->answer_next();
  EXPECT_TRUE(pair.wire.packets.empty());
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
}

TEST(ChannelLivesTest, a_host_that_seems_to_reboot_without_end_is_not_believed) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "x");
  PacketWire::Packet packet = pair.wire.take();
  for (int life = 1; life < 250; ++life) {
    packet.bytes[17] = static_cast<char>(life);  // the client's boot identifier
    pair.wire.deliver(packet);
  }
  EXPECT_LE(pair.server->executed.size(), 131U);
  EXPECT_GT(ChannelPair::statistics(*pair.server_channel).refused, 100U);
}

TEST(ChannelLivesTest, a_server_without_the_protocol_says_so_at_once) {
  ChannelPair pair;
  {
    const Shepherd inside(pair.wire[1].host.monitor());
    EXPECT_TRUE(pair.server_channel->open_enable(*pair.server, {ChannelPair::kNumber + 1, {}, {}}));
    pair.server_channel->open_disable(*pair.server, {ChannelPair::kNumber, {}, {}});
  }
  TestCall call;
  pair.call(call, "x");
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_failed);
}

TEST(ChannelLivesTest, a_protocol_above_may_refuse_a_channel) {
  ChannelPair pair;
  pair.server->accept = Errc::limit_reached;
  TestCall call;
  pair.call(call, "x");
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_failed);
  EXPECT_TRUE(pair.server->executed.empty());
}

TEST(ChannelLivesTest, a_call_that_a_full_server_refuses_is_not_said_never_to_be_executed) {
  ChannelPair pair({.channels_per_peer = 1});
  pair.expect_ok("warm");
  const SessionRef other = pair.open();
  TestCall call;
  pair.call(*other, call, "later");
  const PacketWire::Packet copy = pair.wire.packets.at(0);
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_failed);
  control::Request drop = control::DropIdle{};
  EXPECT_EQ(pair.server_channel->control(drop), Errc::ok);  // there is room again
  pair.wire.deliver(copy);
  EXPECT_EQ(pair.executions("later"), 1U);
}

TEST(ChannelLivesTest, a_flood_of_channels_is_bounded_and_channels_that_are_known_go_on) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "x");
  PacketWire::Packet packet = pair.wire.take();
  const std::uint16_t own = packet.header().channel;
  pair.wire.deliver(packet);
  pair.wire.deliver_all();
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const auto channel = static_cast<std::uint16_t>(i);
    if (channel == own) continue;
    packet.bytes[2] = static_cast<char>(channel >> 8);
    packet.bytes[3] = static_cast<char>(channel & 0xff);
    packet.bytes[11] = static_cast<char>(i >> 16);
    pair.wire.deliver(packet);
    pair.wire.packets.clear();
  }
  EXPECT_EQ(ChannelPair::statistics(*pair.server_channel).sessions, 1024U);
  EXPECT_GT(ChannelPair::statistics(*pair.server_channel).refused, 60'000U);
  pair.expect_ok("still served");
}

TEST(ChannelLivesTest, who_does_not_know_the_servers_life_leaves_nothing_there) {
  ChannelPair pair;
  pair.expect_ok("warm");
  const auto before = ChannelPair::statistics(*pair.server_channel);
  TestCall call;
  pair.call(call, "x");
  PacketWire::Packet packet = pair.wire.take();
  packet.bytes[18] = static_cast<char>(packet.bytes[18] + 1);  // the server's boot identifier
  for (int i = 0; i < 1000; ++i) {
    packet.bytes[3] = static_cast<char>(i);
    pair.wire.deliver(packet);
  }
  EXPECT_EQ(ChannelPair::statistics(*pair.server_channel).sessions, before.sessions);
  EXPECT_EQ(pair.executions("x"), 0U);
}

TEST(ChannelLivesTest, any_bytes_may_arrive) {
  ChannelPair pair;
  pair.expect_ok("warm");
  std::uint64_t state = 7;
  const auto random = [&state] { return state = mix(state, 1); };
  TestCall call;
  pair.call(call, "x");
  const PacketWire::Packet request = pair.wire.packets.at(0);
  pair.wire.deliver_next();
  const PacketWire::Packet reply = pair.wire.take();
  for (int i = 0; i < 20'000; ++i) {
    PacketWire::Packet packet = random() % 2 == 0 ? request : reply;
    switch (random() % 3) {
      case 0: packet.bytes.resize(random() % 40); break;
      case 1: packet.bytes[random() % packet.bytes.size()] = static_cast<char>(random()); break;
      default:
        for (char& byte : packet.bytes)
          if (random() % 4 == 0) byte = static_cast<char>(random());
    }
    if (packet.bytes.size() >= 12 && packet.bytes.compare(0, 12, request.bytes, 0, 12) == 0) continue;
    pair.wire.deliver(packet);
    pair.wire.packets.clear();
  }
  EXPECT_GT(ChannelPair::statistics(*pair.server_channel).malformed, 1000U);
  EXPECT_LE(pair.executions("x"), 1U + 1024U);
}

TEST(ChannelLivesTest, padding_is_cut_off_and_a_length_beyond_the_packet_is_malformed) {
  ChannelPair pair;
  pair.expect_ok("warm");
  TestCall call;
  pair.call(call, "short");
  PacketWire::Packet packet = pair.wire.take();
  PacketWire::Packet lying = packet;
  lying.bytes[23] = 6;
  pair.wire.deliver(lying);
  EXPECT_EQ(pair.executions("short"), 0U);
  packet.bytes += std::string(20, '\0');
  pair.wire.deliver(packet);
  EXPECT_EQ(pair.executions("short"), 1U);
  pair.wire.deliver_all();
  EXPECT_EQ(call.reply, "short");
}

TEST(ChannelLivesTest, messages_that_are_too_long_are_refused_and_too_long_replies_lose_the_call) {
  ChannelPair pair({.max_message = 100});
  TestCall call;
  pair.call(call, std::string(101, 'x'));
  EXPECT_EQ(call.outcome, Errc::message_too_long);
  EXPECT_TRUE(pair.wire.packets.empty());
  pair.expect_ok(std::string(100, 'x'));

  ChannelPair wide;
  wide.expect_ok("warm");
  wide.server->at_once = false;
  TestCall answered_long;
  wide.call(answered_long, "x");
  wide.wire.deliver_next();
  {
    const Shepherd inside(wide.wire[1].host.monitor());
    Message reply = Message::make(wide.wire[1].host.pool(), 19'990);
    wide.server->pending.front().first->reply(std::move(reply));
  }
  wide.wire.deliver_all();
  EXPECT_EQ(answered_long.outcome, Errc::call_lost);
  wide.server->at_once = true;
  wide.expect_ok("next");
}

TEST(ChannelLivesTest, nothing_is_left_when_channels_are_closed_and_packets_have_died) {
  ChannelPair pair;
  pair.wire[1].host.peers().set_mtu(PacketWire::address(0), 1000);
  for (int i = 0; i < 100; ++i) {
    pair.expect_ok("x");
    pair.session = {};
    pair.session = pair.open();
  }
  pair.session = {};
  EXPECT_EQ(ChannelPair::statistics(*pair.server_channel).sessions, 1U);
  pair.wire.pass(124s, 100ms);
  EXPECT_EQ(ChannelPair::statistics(*pair.server_channel).sessions, 1U) << "forgotten while packets may be under way";
  pair.wire.pass(30s, 100ms);
  for (const auto index : {0U, 1U}) {
    Protocol& channel = index == 0 ? *pair.client_channel : *pair.server_channel;
    EXPECT_EQ(ChannelPair::statistics(channel).sessions, 0U);
    EXPECT_EQ(ChannelPair::statistics(channel).state, 0U);
    EXPECT_EQ(pair.wire[index].host.pool().in_use(), 0U);
    EXPECT_EQ(pair.wire[index].host.events().waiting(), 0U);
    EXPECT_EQ(pair.wire[index].host.peers().size(), 0U);
    EXPECT_EQ(pair.wire[index].host.peers().mtu(PacketWire::address(1 - index)), 0U);
    control::Request drop = control::DropIdle{};
    EXPECT_EQ(channel.control(drop), Errc::ok);
    EXPECT_EQ(pair.wire[index].end.sessions(), 0U);
  }
}

TEST(ChannelLivesTest, a_reply_that_nobody_acknowledges_is_not_kept_for_ever) {
  ChannelPair pair;
  pair.expect_ok(std::string(10'000, 'x'));
  EXPECT_GT(pair.wire[1].host.pool().in_use(), 0U);
  pair.wire.pass(25s, 100ms);
  EXPECT_EQ(pair.wire[1].host.pool().in_use(), 0U);
  pair.expect_ok("goes on");
}

TEST(ChannelLivesTest, a_given_channel_is_that_one_and_belongs_to_one_session) {
  ChannelPair pair;
  const SessionRef given = pair.open(77);
  EXPECT_EQ(given->participants().remote.channel, 77);
  ParticipantSet again{ChannelPair::kNumber, {}, {}};
  again.remote.host = PacketWire::address(1);
  again.remote.channel = 77;
  EXPECT_EQ(pair.client_channel->open(*pair.client_high, again).code(), Errc::limit_reached);
  TestCall call;
  pair.call(*given, call, "x");
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(pair.server->opened.at(0).remote.channel, 77);
  EXPECT_EQ(pair.server->opened.at(0).remote.host, PacketWire::address(0));
}

TEST(ChannelLivesTest, ten_thousand_sessions_are_found_in_as_few_probes_as_one) {
  ChannelPair pair({.channels_per_peer = 20'000});
  std::vector<SessionRef> sessions;
  for (int i = 0; i < 10'000; ++i) sessions.push_back(pair.open());
  for (std::size_t i = 0; i < sessions.size(); i += 97) {
    TestCall call;
    pair.call(*sessions[i], call, "x");
    pair.wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
  }
  // The slots of these keys in Map: linear probing at a load of at most one half.
  const std::size_t slots = 32'768;
  std::vector<bool> used(slots);
  std::size_t probes = 0;
  for (const SessionRef& session : sessions) {
    const channel::ChannelKey key{session.get(), session->participants().remote.channel, ChannelPair::kNumber, 4711};
    const channel::ChannelKey of_one_peer{sessions[0].get(), key.channel, key.protocol, key.seed};
    std::size_t at = of_one_peer.hash() & (slots - 1);
    for (++probes; used[at]; ++probes) at = (at + 1) & (slots - 1);
    used[at] = true;
  }
  EXPECT_LT(probes, sessions.size() * 2);
}

/// Makes more calls as soon as it is completed.
class CallsOn final : public Transaction {
 public:
  explicit CallsOn(std::function<void()> then) : then_(std::move(then)) {}
  void completed(Errc errc, Message /*reply*/) noexcept override {
    outcome = errc;
    then_();
  }
  Errc outcome = Errc::ok;

 private:
  std::function<void()> then_;
};

TEST(ChannelLivesTest, calls_that_are_made_while_others_fail_for_a_reboot_reach_the_new_life) {
  ChannelPair pair;
  pair.expect_ok("warm");
  const SessionRef idle = pair.open();
  TestCall again;
  TestCall other;
  CallsOn failing([&] {
    pair.session->call(Message::copy_of(pair.wire[0].host.pool(), std::as_bytes(std::span("a", 1))), again, kNoLimit);
    idle->call(Message::copy_of(pair.wire[0].host.pool(), std::as_bytes(std::span("b", 1))), other, kNoLimit);
  });
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    pair.session->call(Message(pair.wire[0].host.pool()), failing, kNoLimit);
  }
  pair.wire.packets.clear();
  pair.reboot_server();
  pair.wire.pass(60ms);
  pair.wire.deliver_all();
  EXPECT_EQ(failing.outcome, Errc::call_failed);
  EXPECT_EQ(again.reply, "a");
  EXPECT_EQ(other.reply, "b");
}

}  // namespace
}  // namespace lrpc::netrpc
