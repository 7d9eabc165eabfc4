// Calls, packet by packet: what is sent when nothing fails, and when packets are lost, duplicated or late.
#include <cstring>

#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc::mrpc {
namespace {

TEST(MrpcHeaderTest, is_the_sprite_header_of_the_paper_without_padding_and_the_peers_boot_identifier) {
  Header header;
  header.type = Type::reply;
  header.bits = kPleaseAck;
  header.client = {0x0a000001};
  header.server = {0x0a000002};
  header.channel = 3;
  header.sequence = 0x01020304;
  header.fragments = 5;
  header.mask = 0x10;
  header.command = 0x0607;
  header.boot_id = 0x11223344;
  header.size = 100;
  header.offset = 400;
  header.peer_boot_id = 0x55667788;
  std::array<std::byte, Header::kSize> bytes{};
  header.encode(bytes.data());
  const std::uint8_t expected[] = {1, 2,   10, 0, 0, 1,   10, 0,    0,    2,    0,    3,    0,    0,
                                   1, 2,   3,  4, 0, 5,   0,  0x10, 6,    7,    0x11, 0x22, 0x33, 0x44,
                                   0, 100, 0,  0, 1, 144, 0,  0,    0x55, 0x66, 0x77, 0x88};
  static_assert(sizeof expected == Header::kSize);
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
  const Header back = Header::decode(bytes.data());
  EXPECT_EQ(back.type, header.type);
  EXPECT_EQ(back.bits, header.bits);
  EXPECT_EQ(back.client, header.client);
  EXPECT_EQ(back.server, header.server);
  EXPECT_EQ(back.sequence, header.sequence);
  EXPECT_EQ(back.fragments, header.fragments);
  EXPECT_EQ(back.mask, header.mask);
  EXPECT_EQ(back.command, header.command);
  EXPECT_EQ(back.offset, header.offset);
  EXPECT_EQ(back.peer_boot_id, header.peer_boot_id);
}

TEST_F(MrpcTest, the_first_call_asks_for_the_servers_life_and_then_a_call_is_two_packets) {
  std::string reply;
  ASSERT_EQ(call("hello", reply), Errc::ok);
  EXPECT_EQ(reply, "hello");
  EXPECT_EQ(server->command, kCommand);
  ASSERT_EQ(tap[0]->sent.size(), 2U);
  EXPECT_EQ(tap[0]->sent[0].type, Type::query);
  EXPECT_EQ(tap[0]->sent[1].type, Type::request);
  EXPECT_EQ(tap[0]->sent[1].peer_boot_id, net[1].host().boot_id());
  ASSERT_EQ(call("again", reply), Errc::ok);
  net.world.run_for(1s);
  EXPECT_EQ(tap[0]->sent.size(), 3U);  // only the next request acknowledges the reply
  EXPECT_EQ(tap[1]->sent.size(), 3U);
}

TEST_F(MrpcTest, who_only_opens_is_enabled_below_too_because_answers_may_come_another_way) {
  EXPECT_TRUE(tap[0]->enabled());
}

TEST_F(MrpcTest, requests_and_replies_of_every_size_up_to_16_kib_arrive_unchanged) {
  for (const std::size_t size : {0U, 1U, 5U, 1459U, 1460U, 1461U, 2920U, 2921U, 8000U, 16383U, 16384U}) {
    std::string reply;
    ASSERT_EQ(call(pattern(size), reply), Errc::ok) << size;
    EXPECT_EQ(reply, pattern(size)) << size;
    server->answer_size = 16384 - size;
    ASSERT_EQ(call(pattern(size), reply), Errc::ok) << size;
    EXPECT_EQ(reply, pattern(16384 - size)) << size;
    server->answer_size = ~std::size_t{0};
  }
  EXPECT_EQ(statistics(0).retransmissions, 0U);
}

TEST_F(MrpcTest, a_request_of_more_than_16_kib_is_not_sent_and_a_reply_of_more_is_a_lost_call) {
  warm_up();
  std::string reply;
  EXPECT_EQ(call(std::string(16385, 'x'), reply), Errc::message_too_long);
  EXPECT_TRUE(tap[0]->sent.empty());
  server->answer_size = 16385;
  EXPECT_EQ(call("x", reply), Errc::call_lost);
}

TEST_F(MrpcTest, a_lost_request_is_sent_again_and_executed_once) {
  warm_up();
  lose(0, 1, is_request);
  std::string reply;
  EXPECT_EQ(call("one", reply), Errc::ok);
  EXPECT_EQ(server->executed, 1);
  EXPECT_EQ(tap[0]->count(Type::request), 2U);
  EXPECT_EQ(tap[0]->sent.back().bits, kPleaseAck);
}

TEST_F(MrpcTest, a_lost_reply_is_sent_again_without_executing_again) {
  warm_up();
  lose(1, 1, is_reply);
  std::string reply;
  EXPECT_EQ(call("one", reply), Errc::ok);
  EXPECT_EQ(reply, "one");
  EXPECT_EQ(server->executed, 1);
  EXPECT_EQ(tap[1]->count(Type::reply), 2U);
}

TEST_F(MrpcTest, of_a_large_request_exactly_the_lost_fragment_is_sent_again_whichever_it_is) {
  warm_up();
  server->answer_size = 0;
  const std::string large = pattern(16384);  // 12 fragments
  for (int nth = 1; nth <= 12; ++nth) {
    tap[0]->sent.clear();
    lose(0, nth, is_request);
    std::string reply;
    EXPECT_EQ(call(large, reply), Errc::ok);
    EXPECT_EQ(server->executions[large], nth);
    ASSERT_EQ(tap[0]->count(Type::request), 13U) << nth;
    EXPECT_EQ(tap[0]->sent[12].mask, 1U << (nth - 1));
  }
}

TEST_F(MrpcTest, of_a_large_reply_exactly_the_lost_fragment_is_sent_again_whichever_it_is) {
  warm_up();
  server->answer_size = 16384;
  for (int nth = 1; nth <= 12; ++nth) {
    tap[1]->sent.clear();
    lose(1, nth, is_reply);
    std::string reply;
    EXPECT_EQ(call("x", reply), Errc::ok);
    EXPECT_EQ(reply, pattern(16384));
    EXPECT_EQ(server->executions["x"], nth);
    ASSERT_EQ(tap[1]->count(Type::reply), 13U) << nth;
    EXPECT_EQ(tap[1]->sent.back().mask, 1U << (nth - 1));
  }
}

TEST_F(MrpcTest, of_large_messages_any_set_of_fragments_may_be_lost_at_first) {
  warm_up();
  std::uint64_t state = 9;
  for (int round = 0; round < 200; ++round) {
    for (auto* one : tap) {
      state = mix(state, 1);
      one->sent.clear();
      one->judge = [lost = state, seen = 0](const Header& header) mutable {
        const bool data = header.size > 0;
        return data && seen < 12 && (lost >> seen++ & 1) != 0 ? Tap::Fate::lose : Tap::Fate::send;
      };
    }
    std::string reply;
    EXPECT_EQ(call(pattern(16384), reply), Errc::ok);
    EXPECT_EQ(reply, pattern(16384));
  }
  EXPECT_EQ(server->executed, 200);
}

TEST_F(MrpcTest, doubled_packets_execute_nothing_twice) {
  warm_up();
  for (auto* one : tap) one->judge = [](const Header&) { return Tap::Fate::twice; };
  std::string reply;
  EXPECT_EQ(call("small", reply), Errc::ok);
  EXPECT_EQ(call(pattern(10000), reply), Errc::ok);
  EXPECT_EQ(reply, pattern(10000));
  net.world.run_for(1s);
  EXPECT_EQ(server->executed, 2);
}

TEST_F(MrpcTest, fragments_that_arrive_in_reverse_are_one_request) {
  warm_up();
  int kept = 0;
  tap[0]->judge = [&](const Header& header) {
    return header.type == Type::request && header.mask < 8 && ++kept <= 3 ? Tap::Fate::keep : Tap::Fate::send;
  };
  TestCall one;
  start(one, pattern(5000));  // 4 fragments: the last arrives first
  tap[0]->judge = nullptr;
  net.world.run_for(200us);
  {
    const Shepherd inside(net[0].monitor());
    tap[0]->release();
  }
  net.world.run_for(100ms);
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.reply, pattern(5000));
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcTest, an_old_duplicate_that_arrives_after_later_calls_is_never_executed) {
  warm_up();
  tap[0]->judge = [](const Header& header) { return is_request(header) ? Tap::Fate::keep : Tap::Fate::send; };
  TestCall one;
  start(one, "old");
  tap[0]->judge = nullptr;
  net.world.run_for(50ms);  // by now it was retransmitted
  EXPECT_EQ(one.outcome, Errc::ok);
  std::string reply;
  EXPECT_EQ(call("new", reply), Errc::ok);
  {
    const Shepherd inside(net[0].monitor());
    tap[0]->release();
  }
  net.world.run_for(1s);
  EXPECT_EQ(server->executions["old"], 1);
  EXPECT_EQ(server->executions["new"], 1);
}

TEST_F(MrpcTest, a_slow_server_says_that_it_is_at_work_and_the_client_waits_longer_than_it_would_for_a_dead_one) {
  warm_up();
  server->slow = true;
  TestCall one;
  start(one, "slow");
  net.world.run_for(60s);
  EXPECT_FALSE(one.done());
  EXPECT_EQ(server->executed, 1);
  EXPECT_GT(tap[1]->count(Type::request_ack), 100U);
  EXPECT_LT(tap[1]->count(Type::request_ack), 200U);  // about twice a second
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(1ms);
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(one.reply, "late");
}

TEST_F(MrpcTest, a_slow_servers_lost_reply_is_fetched_by_the_next_probe) {
  warm_up();
  server->slow = true;
  TestCall one;
  start(one, "slow");
  net.world.run_for(3s);
  lose(1, 1, is_reply);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(600ms);
  EXPECT_EQ(one.outcome, Errc::ok);
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcTest, a_server_that_lets_go_of_a_request_without_an_answer_makes_the_call_fail) {
  warm_up();
  server->silent = true;
  std::string reply;
  EXPECT_EQ(call("lost", reply), Errc::call_failed);
  EXPECT_EQ(server->executed, 1);
}

TEST_F(MrpcTest, an_unknown_command_fails_as_such_unless_somebody_serves_whatever_comes) {
  std::string reply;
  {
    const Shepherd inside(net[0].monitor());
    session = *mrpc[0]->open(*user, to_server(99));
  }
  EXPECT_EQ(call("x", reply), Errc::bad_procedure);
  {
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(mrpc[1]->open_enable(*server, {}));
    EXPECT_TRUE(mrpc[1]->open_enable(*server, {}));
    EXPECT_EQ(mrpc[1]->open_enable(*tap[1], {}).code(), Errc::name_taken);
  }
  EXPECT_EQ(call("x", reply), Errc::ok);
  EXPECT_EQ(server->command, 99);
  {
    const Shepherd inside(net[1].monitor());
    mrpc[1]->open_disable(*server, {});
  }
  EXPECT_EQ(call("x", reply), Errc::bad_procedure);
}

TEST_F(MrpcTest, more_calls_than_channels_wait_and_are_served_in_their_order) {
  warm_up();
  server->slow = true;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 20; ++i) {
    calls.push_back(std::make_unique<TestCall>());
    start(*calls.back(), std::to_string(i));
  }
  net.world.run_for(1ms);
  EXPECT_EQ(server->executed, 8);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(server->executions[std::to_string(i)], 1);
  server->slow = false;
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(10ms);
  for (const auto& one : calls) EXPECT_EQ(one->outcome, Errc::ok);
  EXPECT_EQ(server->executed, 20);
}

TEST_F(MrpcTest, a_timeout_aborts_a_call_that_executes_and_the_channel_serves_the_next_one) {
  warm_up();
  server->slow = true;
  std::string reply;
  const Time before = net.world.now();
  EXPECT_EQ(call("slow", reply, 100ms), Errc::call_aborted);
  EXPECT_EQ(net.world.now() - before, 100ms);
  server->slow = false;
  EXPECT_EQ(call("next", reply), Errc::ok);
  EXPECT_EQ(reply, "next");
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();  // goes nowhere
  }
  net.world.run_for(1s);
  EXPECT_EQ(call("third", reply), Errc::ok);
  EXPECT_EQ(reply, "third");
}

TEST_F(MrpcTest, a_timeout_also_ends_a_call_that_waits_for_a_channel_or_for_the_peers_life) {
  net.world.set_group(net[1], 1);
  std::string reply;
  EXPECT_EQ(call("query", reply, 100ms), Errc::call_aborted);
  net.world.heal();
  warm_up();
  server->slow = true;
  std::vector<std::unique_ptr<TestCall>> calls;
  for (int i = 0; i < 8; ++i) start(*calls.emplace_back(std::make_unique<TestCall>()), "busy");
  EXPECT_EQ(call("waits", reply, 100ms), Errc::call_aborted);
  EXPECT_EQ(server->executions["waits"], 0);
  for (const auto& one : calls) cancel(*one);
}

TEST_F(MrpcTest, a_cancelled_call_is_not_completed_in_whatever_state_it_is) {
  TestCall query, sent, busy[7], waits, partial;
  start(query, "query");
  cancel(query);
  warm_up();
  server->slow = true;
  start(sent, "sent");
  for (auto& one : busy) start(one, "busy");
  start(waits, "waits");
  net.world.run_for(1ms);
  cancel(waits);
  cancel(sent);
  for (auto& one : busy) cancel(one);
  lose(0, 2, is_request);
  start(partial, pattern(10000));
  net.world.run_for(150us);
  cancel(partial);
  cancel(partial);
  server->slow = false;
  std::string reply;
  EXPECT_EQ(call("next", reply), Errc::ok);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  net.world.run_for(10s);
  EXPECT_EQ(query.completions + sent.completions + waits.completions + partial.completions, 0);
  EXPECT_EQ(server->executions["waits"], 0);
}

TEST_F(MrpcTest, the_client_acknowledges_a_large_reply_when_no_next_request_does) {
  warm_up();
  server->answer_size = 10000;
  std::string reply;
  const std::uint64_t before = net[1].pool().in_use();
  EXPECT_EQ(call("x", reply), Errc::ok);
  net.world.run_for(1s);
  EXPECT_EQ(tap[0]->count(Type::reply_ack), 1U);
  EXPECT_LE(net[1].pool().in_use(), before);
}

TEST_F(MrpcTest, the_timeout_follows_the_measured_round_trip) {
  net.world.set_links({.latency = 5ms});
  for (int i = 0; i < 50; ++i) {
    std::string reply;
    ASSERT_EQ(call("x", reply), Errc::ok);
  }
  const auto slow = test::asked<control::RoundTrip>(*session);
  EXPECT_GT(slow.smoothed, 9ms);
  EXPECT_LT(slow.smoothed, 11ms);
  net.world.set_links({.latency = 10us});
  for (int i = 0; i < 100; ++i) {
    std::string reply;
    ASSERT_EQ(call("x", reply), Errc::ok);
  }
  EXPECT_LT(test::asked<control::RoundTrip>(*session).retransmission_timeout, 1ms);
}

TEST_F(MrpcTest, says_of_itself_what_vip_and_those_above_ask) {
  EXPECT_EQ(test::asked<control::AdvertisedMaximum>(*mrpc[0]).size, 1500U);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*session).size, 16384U);
  EXPECT_EQ(test::asked<control::OptimumMessage>(*session).size, 1460U);
  EXPECT_EQ(test::asked<control::PeerHost>(*session).host, net.address(1));
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
