// REQUEST_REPLY, packet by packet, on a wire whose packets the test holds.
#include <gtest/gtest.h>

#include <optional>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/null/null.h"
#include "netrpc/protocols/request_reply/header.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::request_reply {
namespace {

using namespace std::chrono_literals;

struct Pair {
  explicit Pair(const RequestReplyOptions& options = {}, std::size_t hosts = 2) : wire(hosts) {
    for (std::size_t i = 0; i < hosts; ++i) {
      ends.push_back(make_request_reply(wire[i].host, "pairs", wire[i].end, options));
      highs.push_back(std::make_unique<SinkProtocol>(wire[i].host));
    }
    server.emplace(wire[1].host);
    const Shepherd inside(wire[1].host.monitor());
    EXPECT_TRUE(ends[1]->open_enable(*server, {}));
  }
  ~Pair() { server->pending.clear(); }

  [[nodiscard]] SessionRef open(std::size_t from = 0, std::size_t to = 1) {
    const Shepherd inside(wire[from].host.monitor());
    ParticipantSet participants;
    participants.remote.host = PacketWire::address(to);
    Result<SessionRef> opened = ends[from]->open(*highs[from], participants);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *opened : SessionRef();
  }
  void call(const SessionRef& session, TestCall& call, std::string_view text, Duration timeout = kNoLimit) {
    Host& host = session->protocol().host();
    const Shepherd inside(host.monitor());
    session->call(Message::copy_of(host.pool(), std::as_bytes(std::span(text))), call, timeout);
  }
  [[nodiscard]] control::Statistics statistics(std::size_t host) {
    return test::asked<control::Statistics>(*ends[host]);
  }
  /// Sends a forged message.
  void forge(std::size_t from, std::size_t to, std::uint32_t xid, std::uint32_t type, std::string_view data) {
    std::string bytes(Header::kSize, '\0');
    WireWriter(reinterpret_cast<std::byte*>(bytes.data())).put(xid).put(type);
    wire.deliver({from, PacketWire::address(to), bytes + std::string(data)});
  }

  PacketWire wire;
  std::vector<std::unique_ptr<SinkProtocol>> highs;
  std::vector<std::unique_ptr<Protocol>> ends;
  std::optional<SlowServer> server;
};

using namespace std::string_literals;

TEST(RequestReplyTest, the_header_is_the_first_two_words_of_a_sun_rpc_message) {
  Pair pair({.first_xid = 0x01020304});
  const SessionRef session = pair.open();
  TestCall one;
  pair.call(session, one, "body");
  EXPECT_EQ(pair.wire.packets.front().bytes, "\x01\x02\x03\x04\0\0\0\0body"s);
  pair.wire.deliver_next();
  EXPECT_EQ(pair.wire.packets.front().bytes, "\x01\x02\x03\x04\0\0\0\1body"s);
  pair.wire.deliver_next();
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.reply, "body");
  TestCall two;
  pair.call(session, two, "");
  EXPECT_EQ(pair.wire.packets.front().bytes, "\x01\x02\x03\x05\0\0\0\0"s);
}

TEST(RequestReplyTest, a_request_is_sent_again_with_its_number_until_its_reply_comes_and_each_copy_is_executed) {
  Pair pair;
  const SessionRef session = pair.open();
  TestCall one;
  pair.call(session, one, "again");
  const PacketWire::Packet first = pair.wire.take();
  pair.wire.pass(5s, 10ms);
  ASSERT_GE(pair.wire.packets.size(), 3U);
  for (const PacketWire::Packet& copy : pair.wire.packets) EXPECT_EQ(copy.bytes, first.bytes);
  const std::size_t copies = pair.wire.packets.size();
  EXPECT_EQ(pair.statistics(0).retransmissions, copies);
  pair.wire.deliver_all();
  EXPECT_EQ(pair.server->executed.size(), copies);
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.outcome, Errc::ok);
}

TEST(RequestReplyTest, what_a_connection_has_taken_is_sent_again_only_when_it_has_ended) {
  Pair pair({.give_up = 60s});
  const SessionRef session = pair.open();
  pair.wire[0].end.connection = 7;
  TestCall one;
  pair.call(session, one, "once");
  pair.wire.pass(20s, 10ms);
  EXPECT_EQ(pair.wire.packets.size(), 1U);
  for (const std::uint64_t next : {0U, 8U}) {
    pair.wire[0].end.connection = next;
    const std::size_t before = pair.wire.packets.size();
    pair.wire.pass(6s, 10ms);
    EXPECT_GT(pair.wire.packets.size(), before);
  }
  const std::size_t copies = pair.wire.packets.size();
  pair.wire.pass(20s, 10ms);
  EXPECT_EQ(pair.wire.packets.size(), copies);
  pair.wire.deliver_all();
  EXPECT_EQ(one.outcome, Errc::ok);

  TestCall two;  // a call whose packet the layer below refuses
  pair.wire[0].end.refuses = Errc::limit_reached;
  pair.call(session, two, "later");
  EXPECT_TRUE(pair.wire.packets.empty());
  pair.wire[0].end.refuses = Errc::ok;
  pair.wire.pass(20s, 10ms);
  EXPECT_EQ(pair.wire.packets.size(), 1U);
}

TEST(RequestReplyTest, the_pauses_grow_and_the_call_fails_when_it_gives_up) {
  Pair pair({.give_up = 10s, .initial_timeout = 100ms, .longest_timeout = 2s});
  const SessionRef session = pair.open();
  TestCall one;
  pair.call(session, one, "nobody");
  std::vector<Duration> at;
  const Time began = pair.wire.clock.time;
  std::size_t seen = 0;
  while (!one.done()) {
    for (; seen < pair.wire.packets.size(); ++seen) at.push_back(pair.wire.clock.time - began);
    pair.wire.pass(10ms, 10ms);
  }
  EXPECT_EQ(one.outcome, Errc::call_failed);
  EXPECT_EQ(pair.wire.clock.time - began, 10s);
  const std::vector<Duration> wanted{0ms,    100ms,  200ms,  400ms,  600ms,  1000ms,
                                     1400ms, 2200ms, 3000ms, 4600ms, 6200ms, 8200ms};
  EXPECT_EQ(at, wanted);
  EXPECT_EQ(pair.statistics(0).failed, 1U);
}

TEST(RequestReplyTest, a_call_of_which_no_copy_could_leave_this_host_is_not_said_to_have_been_left_unanswered) {
  Pair pair({.give_up = 10s});
  const SessionRef session = pair.open();
  const auto outcome_of_call = [&](Duration timeout, bool one_leaves) {
    TestCall call;
    pair.wire[0].end.refuses = Errc::limit_reached;
    pair.call(session, call, "x", timeout);
    if (one_leaves) pair.wire[0].end.refuses = Errc::ok;
    while (one_leaves && pair.wire.packets.empty()) pair.wire.pass(10ms, 10ms);
    pair.wire[0].end.refuses = Errc::limit_reached;
    pair.wire.pass(11s, 10ms);
    pair.wire.packets.clear();
    EXPECT_EQ(call.completions, 1);
    return call.outcome;
  };
  EXPECT_EQ(outcome_of_call(kNoLimit, false), Errc::limit_reached);
  EXPECT_EQ(outcome_of_call(5s, false), Errc::limit_reached);
  EXPECT_EQ(outcome_of_call(kNoLimit, true), Errc::call_failed);
  EXPECT_EQ(outcome_of_call(5s, true), Errc::call_aborted);
}

TEST(RequestReplyTest, a_timeout_and_a_cancellation_free_the_session_at_once) {
  Pair pair;
  const SessionRef session = pair.open();
  TestCall late, given_up, busy, next;
  pair.call(session, late, "late", 30ms);
  pair.call(session, busy, "too many");
  EXPECT_EQ(busy.outcome, Errc::limit_reached);
  pair.wire.pass(30ms, 1ms);
  EXPECT_EQ(late.outcome, Errc::call_aborted);
  const PacketWire::Packet request = pair.wire.take();
  pair.call(session, given_up, "given up");
  {
    const Shepherd inside(pair.wire[0].host.monitor());
    session->cancel(given_up);
  }
  pair.wire.packets.clear();
  pair.wire.deliver(request);  // the server answers now; the reply matches no call
  pair.call(session, next, "next");
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
  EXPECT_EQ(late.completions, 1);
  EXPECT_EQ(given_up.completions, 0);
  EXPECT_EQ(pair.statistics(0).duplicates, 1U);
}

TEST(RequestReplyTest, only_the_host_that_was_called_can_answer_and_only_once) {
  Pair pair({.first_xid = 77}, 3);
  const SessionRef session = pair.open();
  const SessionRef elsewhere = pair.open(0, 2);  // so that the other host's messages have a session
  TestCall one;
  pair.call(session, one, "secret");
  pair.forge(2, 0, 77, 1, "forged");
  EXPECT_FALSE(one.done());
  EXPECT_EQ(pair.statistics(0).refused, 1U);
  pair.forge(1, 0, 78, 1, "another number");
  EXPECT_FALSE(one.done());
  const PacketWire::Packet request = pair.wire.take();
  pair.wire.deliver(request);
  pair.wire.deliver(request);  // duplicated on the way
  pair.wire.deliver_all();
  EXPECT_EQ(one.completions, 1);
  EXPECT_EQ(one.reply, "secret");
}

TEST(RequestReplyTest, a_second_reply_shows_that_the_server_is_slow_and_the_next_call_waits_longer) {
  Pair pair({.initial_timeout = 50ms, .minimum_timeout = 50ms});
  const SessionRef session = pair.open();
  TestCall one, two;
  pair.call(session, one, "slow");
  pair.wire.pass(60ms, 1ms);  // one more copy is sent
  ASSERT_EQ(pair.wire.packets.size(), 2U);
  pair.wire.deliver_all();
  ASSERT_TRUE(one.done());
  pair.call(session, two, "slow");
  pair.wire.pass(60ms, 1ms);
  EXPECT_EQ(pair.wire.packets.size(), 1U);
}

TEST(RequestReplyTest, what_a_host_and_all_hosts_have_served_at_one_time_is_bounded) {
  Pair pair({.calls = 9, .calls_per_host = 3}, 3);
  pair.server->at_once = false;
  for (std::uint32_t xid = 0; xid < 10; ++xid) pair.forge(0, 1, xid, 0, "a");
  EXPECT_EQ(pair.server->executed.size(), 3U);
  for (std::uint32_t xid = 0; xid < 10; ++xid) pair.forge(2, 1, xid, 0, "b");
  EXPECT_EQ(pair.server->executed.size(), 5U);
  EXPECT_EQ(pair.statistics(1).refused, 15U);
  while (!pair.server->pending.empty()) pair.server->answer_next();
  EXPECT_EQ(pair.statistics(1).sessions, 0U);
  pair.forge(0, 1, 100, 0, "a");
  EXPECT_EQ(pair.server->executed.size(), 6U);
}

TEST(RequestReplyTest, a_request_without_room_is_sent_again_but_over_a_connection_its_call_ends) {
  Pair pair({.calls_per_host = 1});
  pair.server->at_once = false;
  const SessionRef first = pair.open();
  const SessionRef second = pair.open();
  TestCall served, refused, again;
  pair.wire[0].end.connection = pair.wire[1].end.connection = 7;
  pair.call(first, served, "served");
  pair.wire.deliver_next();
  pair.call(second, refused, "refused");
  pair.wire.deliver_all();
  EXPECT_EQ(refused.completions, 1);
  EXPECT_EQ(refused.outcome, Errc::call_lost);
  EXPECT_FALSE(served.done());

  pair.wire[0].end.connection = pair.wire[1].end.connection = std::nullopt;
  pair.call(second, again, "again");
  pair.wire.deliver_all();
  EXPECT_FALSE(again.done());
  pair.server->answer_next();
  pair.wire.deliver_all();
  EXPECT_EQ(served.reply, "served");
  pair.server->at_once = true;
  pair.wire.pass(600ms, 10ms);
  pair.wire.deliver_all();
  EXPECT_EQ(again.reply, "again");
  EXPECT_EQ(pair.statistics(1).refused, 2U);
}

TEST(RequestReplyTest, a_refused_request_is_lost) {
  Pair pair;
  pair.server->at_once = false;
  const SessionRef session = pair.open();
  TestCall call;
  pair.wire[0].end.connection = pair.wire[1].end.connection = 7;
  pair.call(session, call, "refused");
  pair.wire.deliver_all();
  EXPECT_EQ(pair.server->refuse_next(), Errc::ok);
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::call_lost);
}

TEST(RequestReplyTest, hosts_that_have_many_served_leave_some_to_the_next) {
  Pair pair({.calls = 8, .calls_per_host = 8}, 6);
  pair.server->at_once = false;
  for (const std::size_t from : {0U, 2U, 3U, 4U, 5U}) {
    const std::size_t before = pair.server->executed.size();
    for (std::uint32_t xid = 0; xid < 10; ++xid) pair.forge(from, 1, xid, 0, "x");
    EXPECT_GT(pair.server->executed.size(), before) << from;
  }
  EXPECT_EQ(pair.server->executed.size(), 8U);
  while (!pair.server->pending.empty()) pair.server->answer_next();
}

TEST(RequestReplyTest, messages_that_are_neither_call_nor_reply_or_have_no_taker_bring_about_nothing) {
  Pair pair;
  pair.forge(0, 1, 1, 3, "x");
  pair.forge(0, 1, 1, ~0U, "x");
  for (std::size_t size = 0; size < Header::kSize; ++size)
    pair.wire.deliver({0, PacketWire::address(1), std::string(size, '\0')});
  EXPECT_EQ(pair.statistics(1).malformed, 2 + Header::kSize);
  pair.forge(0, 1, 5, 1, "a reply to nothing");
  pair.forge(0, 1, 5, 2, "");
  EXPECT_TRUE(pair.server->executed.empty());
  {
    const Shepherd inside(pair.wire[1].host.monitor());
    SlowServer other(pair.wire[1].host);
    EXPECT_EQ(pair.ends[1]->open_enable(other, {}).code(), Errc::name_taken);
    pair.ends[1]->open_disable(other, {});
  }
  pair.forge(0, 1, 6, 0, "still served");
  EXPECT_EQ(pair.server->executed.size(), 1U);
}

TEST(RequestReplyTest, what_can_never_be_sent_ends_the_call_at_once) {
  Pair pair;
  const SessionRef session = pair.open();
  TestCall long_one, unreachable;
  pair.call(session, long_one, std::string(pair.wire[0].end.maximum, 'x'));
  EXPECT_EQ(long_one.outcome, Errc::message_too_long);
  pair.wire[0].end.refuses = Errc::host_unreachable;
  pair.call(session, unreachable, "x");
  EXPECT_EQ(unreachable.outcome, Errc::host_unreachable);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*session).size, pair.wire[0].end.maximum - Header::kSize);
}

TEST(RequestReplyTest, what_a_link_that_has_shrunk_does_not_carry_ends_its_call_at_once_and_no_other) {
  Pair pair({.first_xid = 77}, 3);
  const SessionRef session = pair.open();
  const SessionRef elsewhere = pair.open(0, 2);
  const std::string large(2000, 'x');
  TestCall request, reply, next;
  pair.call(session, request, large);
  const std::size_t maximum = std::exchange(pair.wire[0].end.maximum, 1000);
  pair.wire.pass(600ms, 10ms);
  EXPECT_EQ(request.outcome, Errc::call_lost);
  EXPECT_EQ(request.completions, 1);
  pair.wire[0].end.maximum = maximum;
  pair.wire.packets.clear();

  pair.wire[1].end.maximum = 1000;
  pair.call(session, reply, large);
  pair.wire.deliver_next();
  const PacketWire::Packet word = pair.wire.take();
  pair.forge(2, 0, 78, 2, "");
  pair.forge(1, 0, 79, 2, "");
  EXPECT_FALSE(reply.done());
  pair.wire.deliver(word);
  EXPECT_EQ(reply.outcome, Errc::call_lost);
  pair.wire.deliver(word);
  pair.call(session, next, "next");
  pair.wire.deliver(word);
  pair.wire.deliver_all();
  EXPECT_EQ(next.reply, "next");
}

TEST(RequestReplyTest, a_layer_below_that_asks_for_the_longest_message_is_answered) {
  PacketWire wire(1);
  const auto null = null_kind().make({wire[0].host, "null", {&wire[0].end}, {}});
  ASSERT_TRUE(null);
  const auto end = make_request_reply(wire[0].host, "pairs", **null);
  SlowServer server(wire[0].host);
  const Shepherd inside(wire[0].host.monitor());
  ASSERT_TRUE(end->open_enable(server, {}));
  control::AdvertisedMaximum advertised;
  // NULL passes the question to REQUEST_REPLY, which passes it to no protocol.
  EXPECT_EQ(control::ask(**null, advertised), Errc::not_supported);
  end->open_disable(server, {});
}

TEST(RequestReplyTest, sessions_and_requests_that_are_let_go_leave_nothing) {
  Pair pair;
  pair.server->at_once = false;
  TestCall one;
  {
    const SessionRef session = pair.open();
    pair.call(session, one, "unanswered");
    pair.wire.deliver_next();
    EXPECT_EQ(pair.statistics(0).sessions, 1U);
    EXPECT_EQ(pair.statistics(1).sessions, 1U);
    const Shepherd inside(pair.wire[0].host.monitor());
    session->cancel(one);
  }
  pair.server->pending.clear();
  EXPECT_EQ(pair.statistics(0).sessions, 0U);
  EXPECT_EQ(pair.statistics(1).sessions, 0U);
  EXPECT_TRUE(pair.wire.packets.empty());
  pair.wire.pass(1min, 1s);
  EXPECT_TRUE(pair.wire.packets.empty());
}

}  // namespace
}  // namespace lrpc::netrpc::request_reply
