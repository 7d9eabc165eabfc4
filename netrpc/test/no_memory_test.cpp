// Protocols without memory for what they make at the first use, or when more is in use than ever before. (Buffers are
// not meant: they come from their pool.)
#include <gtest/gtest.h>

#include <deque>

#include "netrpc/protocols/auth/protocol.h"
#include "netrpc/protocols/channel/test/channel_pair.h"
#include "netrpc/protocols/datagram/reliable_datagram.h"
#include "netrpc/protocols/fault/fault.h"
#include "netrpc/protocols/forwarding/forwarding_select.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/mrpc/mrpc.h"
#include "netrpc/protocols/null/null.h"
#include "netrpc/protocols/paired/paired.h"
#include "netrpc/protocols/paired/test/paired_pair.h"
#include "netrpc/protocols/vip/test/vip_host.h"
#include "netrpc/sim/test/counted_allocations.h"
#include "netrpc/test/fake_calls.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// Runs `work` without memory, inside the host's monitor.
template <class Work>
auto without_memory(Host& host, const Work& work) {
  const Shepherd inside(host.monitor());
  struct Denied {
    Denied() { deny_memory(true); }
    ~Denied() { deny_memory(false); }
    Denied(const Denied&) = delete;
    Denied& operator=(const Denied&) = delete;
  } const denied;
  return work();
}

struct NoMemory : testing::Test {
  NoMemory() { calls.replies.reserve(8); }
  [[nodiscard]] Message message(std::string_view text) {
    return Message::copy_of(host.pool(), std::as_bytes(std::span(text)));
  }
  [[nodiscard]] static ParticipantSet to(HostAddress remote) {
    ParticipantSet participants = SimHosts::anyone();
    participants.remote.host = remote;
    return participants;
  }

  PacketWire wire{1};
  Host& host = wire[0].host;
  test::FakeCalls calls{host};
  SinkProtocol sink{host};
};

TEST_F(NoMemory, refuses_a_reliable_datagram_with_limit_reached) {
  const auto datagrams = make_reliable_datagram(host, "datagrams", calls);
  const SessionRef session = *datagrams->open(sink, to(PacketWire::address(1)));
  const auto push = [&] { return session->push(message("x")); };
  EXPECT_EQ(without_memory(host, push), Errc::limit_reached);
  EXPECT_EQ(push(), Errc::ok);
}

TEST_F(NoMemory, for_channels_refuses_the_answer_to_a_reliable_datagram_with_limit_reached) {
  const auto datagrams = make_reliable_datagram(host, "datagrams", calls);
  ASSERT_TRUE(datagrams->open_enable(sink, SimHosts::anyone()));
  calls.enabled_for.remote.host = PacketWire::address(1);
  calls.arrive(std::string("\0\0\0\xf0hello", 9));
  ASSERT_EQ(sink.sessions.size(), 1U);
  const auto push = [&] { return sink.sessions.front()->push(message("x")); };
  EXPECT_EQ(without_memory(host, push), Errc::limit_reached);
  EXPECT_EQ(push(), Errc::ok);
  sink.sessions.clear();
}

TEST_F(NoMemory, tells_the_sender_of_a_datagram_that_there_is_no_room_for_its_session) {
  const auto datagrams = make_reliable_datagram(host, "datagrams", calls);
  ASSERT_TRUE(datagrams->open_enable(sink, SimHosts::anyone()));
  calls.enabled_for.remote.host = PacketWire::address(1);
  const SessionRef session(new test::FakeCalls::FakeSession(calls, *calls.enabled, calls.enabled_for));
  const auto arrive = [&] { calls.enabled->call_demux(*session, message(std::string_view("\0\0\0\xf0hello", 9))); };
  without_memory(host, arrive);
  arrive();
  ASSERT_EQ(calls.replies.size(), 2U);
  EXPECT_EQ(calls.replies.front().size(), 2U) << "the mark of limit_reached";
  EXPECT_EQ(calls.replies.back(), "");
  EXPECT_EQ(sink.received, std::vector<std::string>{"hello"});
  sink.sessions.clear();
}

TEST_F(NoMemory, answers_a_request_that_is_to_be_forwarded_with_busy) {
  ForwardingSelectOptions options;
  options.routes[7] = PacketWire::address(1);
  const auto select = make_forwarding_select(host, "select", calls, options);
  ASSERT_TRUE(select);
  const std::string request("\1\0\7\0data", 8);
  calls.takes = 1s;
  calls.arrive(request);  // is on its way to the next host while the second one arrives
  const SessionRef second(new test::FakeCalls::FakeSession(calls, **select, calls.enabled_for));
  const auto arrive = [&] { calls.enabled->call_demux(*second, message(request)); };
  without_memory(host, arrive);
  ASSERT_EQ(calls.replies.size(), 1U);
  EXPECT_EQ(calls.replies.back(), std::string("\2\0\7\2", 4));
  wire.pass(1s, 1ms);
  EXPECT_EQ(calls.replies.size(), 2U);
  arrive();
  wire.pass(1s, 1ms);
  EXPECT_EQ(calls.replies.size(), 3U);
}

TEST_F(NoMemory, refuses_a_request_for_which_a_layer_can_make_no_session) {
  const auto layer = test::make_layer(null_kind(), host, calls);
  SlowServer server(host);
  ASSERT_TRUE(layer->open_enable(server, SimHosts::anyone()));
  const SessionRef session(new test::FakeCalls::FakeSession(calls, *calls.enabled, calls.enabled_for));
  EXPECT_EQ(without_memory(host, [&] { return calls.enabled->open_done(*session, calls.enabled_for); }),
            Errc::limit_reached);
  without_memory(host, [&] { calls.enabled->demux(*session, message("lost")); });
  without_memory(host, [&] { calls.enabled->call_demux(*session, message("refused")); });
  EXPECT_EQ(calls.refused, Errc::limit_reached);
  EXPECT_EQ(test::asked<control::Statistics>(*layer).refused, 3U);
  calls.enabled->call_demux(*session, message("served"));
  EXPECT_EQ(server.executed, std::vector<std::string>{"served"});
  EXPECT_EQ(calls.replies, std::vector<std::string>{"served"});
}

TEST_F(NoMemory, loses_a_message_that_fault_is_to_hold) {
  InstanceParts parts{host, "fault", {&wire[0].end}, {}};
  parts.options.set("delay", "1ms");
  const auto fault = fault_kind().make(parts);
  ASSERT_TRUE(fault);
  const SessionRef session = *(*fault)->open(sink, to(PacketWire::address(1)));
  const auto push = [&] { return session->push(message("x")); };
  EXPECT_EQ(without_memory(host, push), Errc::ok);
  EXPECT_EQ(test::asked<control::Statistics>(**fault).refused, 1U);
  EXPECT_EQ(push(), Errc::ok);
  wire.pass(1ms);
  EXPECT_EQ(wire.packets.size(), 1U);
}

TEST_F(NoMemory, opens_no_session_below_auth_but_the_next_try_does) {
  const auth::Settings settings{};
  control::Statistics counted;
  auth::Peer peer(sink, calls, counted, settings, PacketWire::address(1), auth::Key());
  const auto opened = [&] { return peer.open_lower().code(); };
  EXPECT_EQ(without_memory(host, opened), Errc::limit_reached);
  EXPECT_EQ(opened(), Errc::ok);
}

TEST(NoMemoryOnTheWay, loses_a_message_that_another_session_below_vip_is_to_carry) {
  SimHosts net(2);
  VipHost client(net[0]);
  const Shepherd inside(net[0].monitor());
  SessionRef session = *client.vip->open(*client.sink, net.to(1));
  EXPECT_EQ(client.ip.opened, 0);
  const std::string longer_than_a_frame(3000, 'x');
  Message message = net.message(0, longer_than_a_frame);
  deny_memory(true);
  const Errc outcome = session->push(std::move(message));
  deny_memory(false);
  EXPECT_EQ(outcome, Errc::limit_reached);
  EXPECT_EQ(session->push(net.message(0, longer_than_a_frame)), Errc::ok);
  EXPECT_EQ(client.ip.pushed, 1);
  session = {};
}

TEST(NoMemoryForNumbers, of_closed_channels_ends_no_program) {
  ChannelPair pair;
  pair.expect_ok("warm");
  without_memory(pair.wire[0].host, [&] { pair.session = {}; });
  pair.session = pair.open();
  pair.expect_ok("next");
}

/// The first request of a client is lost, and so is the first one on its second channel.
TEST(NoMemoryForRequests, of_new_clients_and_channels_lets_them_come_again) {
  ChannelPair pair;
  const SessionRef second = pair.open();
  const auto arrive_without_memory = [&pair] {
    ASSERT_EQ(pair.wire.packets.front().flags(), channel_flags::kRequest);
    const std::string& bytes = pair.wire.packets.front().bytes;
    without_memory(pair.wire[1].host, [&] { pair.wire[1].end.arrive(PacketWire::address(0), bytes); });
  };
  TestCall first;
  pair.call(first, "first");
  for (int packets = 0; packets < 2; ++packets) pair.wire.deliver_next();  // the query, the answer
  arrive_without_memory();
  EXPECT_EQ(pair.server->executed.size(), 0U);
  pair.wire.deliver_all();
  EXPECT_EQ(first.outcome, Errc::ok);
  TestCall next;
  pair.call(*second, next, "next");
  arrive_without_memory();
  EXPECT_EQ(pair.server->executed.size(), 1U);
  pair.wire.deliver_all();
  EXPECT_EQ(next.outcome, Errc::ok);
  EXPECT_EQ(pair.server->executed.size(), 2U);
}

TEST(NoMemoryForRequests, of_new_hosts_lets_them_come_again_to_other_protocols) {
  for (const ProtocolKind& kind : {mrpc::mrpc_kind(), paired_kind()}) {
    SCOPED_TRACE(kind.name);
    PacketWire wire;
    const auto client = test::make_layer(kind, wire[0].host, wire[0].end);
    const auto serving = test::make_layer(kind, wire[1].host, wire[1].end);
    SinkProtocol user(wire[0].host);
    SlowServer server(wire[1].host);
    ParticipantSet to = SimHosts::anyone();
    to.local.command = to.remote.command = 7;
    ASSERT_TRUE(serving->open_enable(server, to));
    to.remote.host = PacketWire::address(1);
    SessionRef session = *client->open(user, to);
    TestCall call;
    {
      const Shepherd inside(wire[0].host.monitor());
      session->call(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span("x", 1))), call, kNoLimit);
    }
    for (int packets = 0; packets < 2; ++packets) wire.deliver_next();  // the client asks for the server's life
    const std::string request = wire.packets.front().bytes;
    without_memory(wire[1].host, [&] { wire[1].end.arrive(PacketWire::address(0), request); });
    EXPECT_EQ(server.executed.size(), 0U);
    wire.deliver_all();
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(server.executed.size(), 1U);
    session = {};
  }
}

TEST(NoMemoryForMessages, of_new_hosts_loses_what_has_arrived) {
  PacketWire wire;
  const auto from = test::make_layer(fragment_kind(), wire[0].host, wire[0].end);
  const auto to = test::make_layer(fragment_kind(), wire[1].host, wire[1].end);
  SinkProtocol user(wire[0].host);
  SinkProtocol sink(wire[1].host);
  ParticipantSet participants = SimHosts::anyone();
  ASSERT_TRUE(to->open_enable(sink, participants));
  participants.remote.host = PacketWire::address(0);
  ASSERT_TRUE(wire[1].end.open(*to, participants));  // the wire's own session
  participants.remote.host = PacketWire::address(1);
  SessionRef session = *from->open(user, participants);
  const auto push = [&](std::string_view text) {
    const Shepherd inside(wire[0].host.monitor());
    EXPECT_EQ(session->push(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span(text)))), Errc::ok);
  };
  push("lost");
  const std::string packet = wire.take().bytes;
  without_memory(wire[1].host, [&] { wire[1].end.arrive(PacketWire::address(0), packet); });
  push("received");
  wire.deliver_all();
  EXPECT_EQ(sink.received, std::vector<std::string>{"received"});
  sink.sessions.clear();
  session = {};
}

TEST(NoMemoryForHandshakes, with_new_peers_and_for_new_sessions_loses_what_has_arrived) {
  PacketWire wire;
  const std::string keys = "* " + auth::generate_key();
  std::deque<SinkProtocol> sinks;
  std::deque<auth::AuthProtocol> ends;
  for (std::size_t i = 0; i < 2; ++i) {
    auth::AuthOptions options;
    options.settings.ciphers = static_cast<auth::Ciphers>(auth::Cipher::chacha20_poly1305);
    sinks.emplace_back(wire[i].host);
    ends.emplace_back(wire[i].host, "auth", wire[i].end, options, *auth::KeyRing::parse(keys, "keys"));
    const Shepherd inside(wire[i].host.monitor());
    ASSERT_TRUE(ends[i].enable_below());
    ASSERT_TRUE(ends[i].open_enable(sinks[i], SimHosts::anyone()));
    ASSERT_TRUE(ends[i].open_enable(sinks[i], SimHosts::anyone(protocol_numbers::kFirstOfTests + 1)));
  }
  const auto push = [&](ProtocolNumber number, std::string_view text) {
    const Shepherd inside(wire[0].host.monitor());
    ParticipantSet to = SimHosts::anyone(number);
    to.remote.host = PacketWire::address(1);
    const SessionRef session = *ends[0].open(sinks[0], to);
    EXPECT_EQ(session->push(Message::copy_of(wire[0].host.pool(), std::as_bytes(std::span(text)))), Errc::ok);
  };
  const auto arrive_without_memory = [&] {
    const std::string bytes = wire.take().bytes;
    without_memory(wire[1].host, [&] { wire[1].end.arrive(PacketWire::address(0), bytes); });
    EXPECT_TRUE(wire.packets.empty());
  };
  ParticipantSet from = SimHosts::anyone();
  from.remote.host = PacketWire::address(0);
  ASSERT_TRUE(wire[1].end.open(ends[1], from));  // the wire's own session
  push(protocol_numbers::kFirstOfTests, "first");
  arrive_without_memory();
  wire.pass(100ms);
  wire.deliver_all();
  EXPECT_EQ(sinks[1].received, std::vector<std::string>{"first"});
  push(protocol_numbers::kFirstOfTests + 1, "lost");
  arrive_without_memory();
  push(protocol_numbers::kFirstOfTests + 1, "second");
  wire.deliver_all();
  EXPECT_EQ(sinks[1].received, (std::vector<std::string>{"first", "second"}));
  for (SinkProtocol& sink : sinks) sink.sessions.clear();
}

TEST(NoMemoryForLives, of_a_host_that_has_rebooted_fails_its_calls_and_executes_no_late_packet) {
  ChannelPair pair;
  pair.expect_ok("warm");
  pair.server->at_once = false;
  TestCall call;
  pair.call(call, "once");
  const PacketWire::Packet request = pair.wire.packets.front();
  pair.wire.deliver_all();
  const auto hears_another_life = [&pair](std::size_t at) {
    Host& host = pair.wire[at].host;
    const HostAddress other = PacketWire::address(1 - at);
    without_memory(host, [&] { host.peers().heard(other, host.peers().boot_id(other) + 1); });
  };
  hears_another_life(0);
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(call.outcome, Errc::call_failed);
  hears_another_life(1);
  pair.wire.deliver(request);
  pair.wire.deliver_all();
  EXPECT_EQ(pair.executions("once"), 1U);
}

TEST(NoMemoryForTurns, of_requests_that_wait_for_room_lets_them_wait_on) {
  paired::PairedPair pair({.memory = BufferPool::kSizes[1]});
  pair.server->at_once = false;
  for (std::uint16_t channel = 1; channel <= 2; ++channel)
    pair.forge({.control = paired::bits::kLastSegment,
                .segment = 1,
                .call_number = 1,
                .conversation = pair.meet(0, channel),
                .channel = channel},
               "x");
  ASSERT_EQ(pair.server->executed.size(), 1U);
  pair.answer("y");
  Host& host = pair.wire[1].host;
  without_memory(host, [&] { host.events().run_due(); });
  EXPECT_EQ(pair.server->executed.size(), 1U);
  pair.wire.pass(1s, 1ms);
  EXPECT_EQ(pair.server->executed.size(), 2U);
}

}  // namespace
}  // namespace lrpc::netrpc
