// Packets that no M_RPC would send: none may be executed, kept without bound, or harm other hosts.
#include "length.h"
#include "netrpc/protocols/mrpc/test/mrpc_fixture.h"

namespace lrpc::netrpc::mrpc {
namespace {

class MrpcHostileTest : public MrpcTest {
 protected:
  MrpcHostileTest() : MrpcTest(small()) {}
  static Settings small() {
    Settings settings;
    settings.clients = 10;
    settings.memory = 256 << 10;
    return settings;
  }
  std::uint64_t next() { return state_ = mix(state_, 1); }
  std::uint64_t state_ = 4;
};

TEST_F(MrpcHostileTest, headers_out_of_range_are_counted_and_nothing_is_executed) {
  warm_up();
  const auto refused = [&](auto change, std::string_view data = "data") {
    Header header = request(100);
    header.size = 4;
    change(header);
    const std::uint64_t before = statistics(1).malformed;
    inject(0, header, data);
    net.world.run_for(100us);
    EXPECT_EQ(statistics(1).malformed, before + 1) << testing::UnitTest::GetInstance()->current_test_info()->name();
  };
  refused([](Header& h) { h.fragments = 0; });
  refused([](Header& h) { h.fragments = 17; });
  refused([](Header& h) { h.fragments = 0xffff; });
  refused([](Header& h) { h.mask = 0; });
  refused([](Header& h) { h.mask = 2; });
  refused([](Header& h) { h.mask = 3, h.fragments = 2; });
  refused([](Header& h) { h.mask = 4, h.fragments = 2; });
  refused([](Header& h) { h.offset = 4; });
  refused([](Header& h) { h.mask = 2, h.fragments = 3, h.offset = 3; });
  refused([](Header& h) { h.mask = 4, h.fragments = 3, h.offset = 7; });
  refused([](Header& h) { h.mask = 2, h.fragments = 2, h.offset = 0; });
  refused([](Header& h) { h.mask = 2, h.fragments = 2, h.offset = 16384; });
  refused([](Header& h) { h.mask = 1, h.fragments = 2, h.size = 0; });
  refused([](Header& h) { h.size = 1000; });  // more data than the packet has
  refused([](Header& h) { h.channel = 64; });
  refused([](Header& h) { h.channel = 0xffff; });
  refused([](Header& h) { h.type = static_cast<Type>(0); });
  refused([](Header& h) { h.type = static_cast<Type>(8); });
  refused([](Header& h) { h.boot_id = 0; });
  EXPECT_EQ(server->executed, 0);
}

TEST_F(MrpcHostileTest, packets_shorter_than_a_header_are_counted) {
  warm_up();
  {
    const Shepherd inside(net[0].monitor());
    const SessionRef raw = *net[0].ip().open(*tap[0], net.to(1, protocol_numbers::kMonolithic));
    (void)raw->push(net.message(0, std::string(39, 'x')));  // IP does not pad
  }
  net.world.run_for(1ms);
  std::string reply;
  EXPECT_EQ(call("x", reply), Errc::ok);
}

TEST_F(MrpcHostileTest, packets_for_another_host_or_from_another_host_than_they_say_are_dropped) {
  warm_up();
  Header header = request(100);
  header.server = {0x01020304};
  inject(0, header);
  header = request(100);
  header.client = {0x01020304};
  inject(0, header);
  net.world.run_for(1ms);
  EXPECT_EQ(server->executed, 0);
  EXPECT_EQ(statistics(1).no_session, 1U);
  EXPECT_EQ(statistics(1).refused, 1U);
}

TEST_F(MrpcHostileTest, who_does_not_know_this_life_makes_no_record) {
  Header header = request(1);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    header.peer_boot_id = net[1].host().boot_id() + 1 + i;
    inject(0, header);
  }
  net.world.run_for(10ms);
  EXPECT_EQ(statistics(1).state, 0U);
  EXPECT_EQ(server->executed, 0);
}

TEST_F(MrpcHostileTest, fragments_that_contradict_each_other_are_dropped) {
  warm_up();
  Header header = request(100);
  header.fragments = 3;
  header.size = 4;
  inject(0, header, "abcd");
  Header other = header;
  other.mask = 2;
  other.offset = 3;
  other.size = 3;
  inject(0, other, "xyz");  // another fragment size
  other = header;
  other.fragments = 2;
  other.mask = 2;
  other.offset = 4;
  inject(0, other, "wxyz");  // another number of fragments
  net.world.run_for(1ms);
  EXPECT_EQ(server->executed, 0);
  EXPECT_EQ(statistics(1).malformed, 2U);
  header.mask = 2;
  header.offset = 4;
  inject(0, header, "efgh");
  header.mask = 4;
  header.offset = 8;
  header.size = 1;
  inject(0, header, "i");
  net.world.run_for(1ms);
  EXPECT_EQ(server->executions["abcdefghi"], 1);
}

TEST_F(MrpcHostileTest, a_flood_of_partial_requests_keeps_no_more_than_the_limit) {
  warm_up();
  const std::string data(1000, 'x');
  for (std::uint16_t channel = 0; channel < 64; ++channel)
    for (unsigned i = 0; i < 15; ++i) {
      Header header = request(100, channel);
      header.fragments = 16;
      header.mask = static_cast<std::uint16_t>(1U << i);
      header.size = 1000;
      header.offset = static_cast<std::uint16_t>(1000 * i);
      inject(0, header, data);
      net.world.run_for(20us);
    }
  EXPECT_LE(net[1].pool().in_use(), (256U << 10) / BufferPool::kSizes[1] + 8);
  EXPECT_GT(statistics(1).refused, 0U);
  net.world.run_for(4min);
  EXPECT_EQ(statistics(1).state, 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

TEST_F(MrpcHostileTest, short_replies_in_large_buffers_count_for_what_they_take) {
  warm_up();
  server->slow = true;
  for (std::uint16_t channel = 0; channel < 64; ++channel) {
    inject(0, request(100, channel));
    net.world.run_for(20us);
  }
  {
    const Shepherd inside(net[1].monitor());
    for (const SessionRef& of_client : std::exchange(server->pending, {})) {
      Message reply = Message::make(net[1].pool(), 16'000);
      reply.truncate(1000);
      of_client->reply(std::move(reply));
    }
  }
  net.world.run_for(1ms);
  EXPECT_LE(net[1].pool().in_use() * BufferPool::kSizes[2], 256U << 10);
}

/// Host 2 sends parts of 64 requests to host 1, each with `padding` behind it. Then a large call of host 0 succeeds.
void expect_room_beside_partial_requests(SimHosts& net, Protocol& (SimHost::*device)(), std::size_t memory,
                                         std::size_t padding) {
  constexpr std::size_t kHonest = 0;
  constexpr std::size_t kServer = 1;
  constexpr std::size_t kGreedy = 2;
  Settings settings;
  settings.memory = memory;
  const auto on = [&net](std::size_t host, auto act) {
    const Shepherd inside(net[host].monitor());
    return act(net[host]);
  };
  on(kServer, [&](SimHost& host) {
    ParticipantSet enabled;
    enabled.local.command = 7;
    auto& served = host.add<Monolithic>("mrpc", (host.*device)(), settings);
    EXPECT_TRUE(served.open_enable(host.add<TestServer>(), enabled));
  });
  SessionRef session = on(kHonest, [&](SimHost& host) {
    ParticipantSet participants = net.to(kServer);
    participants.remote.command = 7;
    return *host.add<Monolithic>("mrpc", (host.*device)(), settings).open(host.add<SinkProtocol>("user"), participants);
  });
  SessionRef hostile = on(kGreedy, [&](SimHost& host) {
    auto& tap = host.add<Tap>((host.*device)());
    return *(host.*device)().open(tap, net.to(kServer, protocol_numbers::kMonolithic));
  });
  for (std::uint16_t channel = 0; channel < 64; ++channel)
    for (unsigned i = 0; i < 15; ++i) {
      Header header;
      header.client = net.address(kGreedy);
      header.server = net.address(kServer);
      header.channel = channel;
      header.sequence = 100;
      header.command = 7;
      header.boot_id = net[kGreedy].host().boot_id();
      header.peer_boot_id = net[kServer].host().boot_id();
      header.fragments = 16;
      header.mask = static_cast<std::uint16_t>(1U << i);
      header.size = 1000;
      header.offset = static_cast<std::uint16_t>(1000 * i);
      on(kGreedy, [&](SimHost&) {
        Message message = net.message(kGreedy, std::string(1000 + padding, 'x'));
        header.encode(message.push(Header::kSize));
        return hostile->push(std::move(message));
      });
      net.world.run_for(20us);
    }
  TestCall call;
  const std::string large = pattern(16'000);
  on(kHonest, [&](SimHost&) { session->call(net.message(kHonest, large), call, kNoLimit); });
  EXPECT_TRUE(net.world.run_until([&] { return call.done(); }, 10min));
  EXPECT_EQ(call.outcome, Errc::ok);
  EXPECT_EQ(call.reply, large);
  on(kHonest, [&](SimHost&) { session = {}; });
  on(kGreedy, [&](SimHost&) { hostile = {}; });
}

TEST(MrpcMemory, is_left_to_other_hosts_by_one_that_finishes_no_request) {
  SimHosts net(3);
  expect_room_beside_partial_requests(net, &SimHost::ethernet, 256 << 10, 0);
}

TEST(MrpcMemory, is_left_to_other_hosts_by_one_that_pads_what_it_sends) {
  SimHosts net(1);
  net.world.add_host({.name = {}, .address = {}, .buffer_limit = 4 << 20});
  net.world.add_host();
  expect_room_beside_partial_requests(net, &SimHost::ip, 2 << 20, 2000);
}

TEST_F(MrpcHostileTest, requests_given_up_again_and_again_do_not_pile_up_at_a_server_that_is_slow) {
  warm_up();
  server->slow = true;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    inject(0, request(100 + i, static_cast<std::uint16_t>(i % 4)));
    net.world.run_for(20us);
  }
  EXPECT_LE(server->executed, 64 + 4);
  EXPECT_GT(statistics(1).refused, 900U);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  server->slow = false;
  inject(0, request(2000));
  net.world.run_for(1ms);
  EXPECT_GT(server->executed, 65);
}

TEST_F(MrpcHostileTest, requests_given_up_by_new_lives_of_a_client_do_not_pile_up_at_a_server_that_never_answers) {
  warm_up();
  server->slow = true;
  for (BootId life = 1; life <= 36; ++life) {
    for (std::uint16_t channel = 0; channel < kMaxChannels; ++channel) {
      Header header = request(100, channel);
      header.boot_id = life;
      inject(0, header);
      net.world.run_for(20us);
    }
    if (life % 9 == 0) net.world.run_for(5min);  // also when all idle state has been dropped
  }
  EXPECT_LE(server->executed, 128);
  EXPECT_EQ(statistics(1).state, 1U);
  {
    const Shepherd inside(net[1].monitor());
    server->answer_pending();
  }
  server->slow = false;
  const int before = server->executed;
  Header header = request(100);
  header.boot_id = 99;
  inject(0, header);
  net.world.run_for(1ms);
  EXPECT_EQ(server->executed, before + 1);
  net.world.run_for(5min);
  EXPECT_EQ(statistics(1).state, 0U);
}

TEST_F(MrpcHostileTest, a_reply_that_cannot_be_kept_is_a_failed_call_if_it_is_lost_but_never_a_second_execution) {
  settings_.memory = 0;
  crash(1);
  net[1].boot();
  warm_up();
  std::string reply;
  EXPECT_EQ(call("kept", reply), Errc::ok);
  lose(1, 1, is_reply);
  EXPECT_EQ(call("lost", reply), Errc::call_failed);
  EXPECT_EQ(server->executions["lost"], 1);
}

TEST_F(MrpcHostileTest, replies_and_acknowledgements_that_nobody_asked_for_change_nothing) {
  warm_up();
  server->slow = true;
  TestCall one;
  start(one, "x");
  net.world.run_for(1ms);
  const Header outstanding = tap[0]->sent.back();
  const auto forge = [&](auto change) {
    Header header = outstanding;
    header.type = Type::reply;
    header.boot_id = net[1].host().boot_id();
    header.peer_boot_id = net[0].host().boot_id();
    change(header);
    header.size = 0;
    const Shepherd inside(net[1].monitor());
    const SessionRef raw = *net[1].ethernet().open(*tap[1], net.to(0, protocol_numbers::kMonolithic));
    Message message(net[1].pool());
    header.encode(message.push(Header::kSize));
    (void)raw->push(std::move(message));
  };
  forge([](Header& h) { ++h.sequence; });
  forge([](Header& h) { --h.sequence; });
  forge([](Header& h) { h.channel = 5; });
  forge([](Header& h) { h.channel = 200; });
  forge([](Header& h) { ++h.boot_id; });
  forge([](Header& h) { ++h.peer_boot_id; });
  forge([](Header& h) { h.server = {77}; });
  forge([](Header& h) { h.fragments = 9; });
  forge([](Header& h) { h.type = Type::request_ack, h.fragments = 3; });
  forge([](Header& h) { h.type = Type::request_ack, h.mask = 0xffff; });
  forge([](Header& h) { h.type = Type::life; });
  forge([](Header& h) { h.type = Type::rebooted; });
  net.world.run_for(1ms);
  EXPECT_FALSE(one.done());
  cancel(one);
}

TEST_F(MrpcHostileTest, random_headers_from_a_peer_that_knows_this_life_do_no_harm) {
  warm_up();
  for (int i = 0; i < testing_lrpc::rounds(25'000); ++i) {
    Header header = request(static_cast<std::uint32_t>(next() % 50));
    header.type = static_cast<Type>(next() % 9);
    header.bits = static_cast<std::uint16_t>(next() & 0xff00);
    header.channel = static_cast<std::uint16_t>(next() % 66);
    header.fragments = static_cast<std::uint16_t>(next() % 18);
    header.mask = next() % 4 == 0 ? static_cast<std::uint16_t>(next()) : static_cast<std::uint16_t>(1U << next() % 16);
    header.size = static_cast<std::uint16_t>(next() % 12);
    header.offset =
        static_cast<std::uint16_t>(next() % 4 == 0 ? next() : header.size * static_cast<unsigned>(next() % 16));
    inject(0, header, std::string(next() % 16, 'r'));
    if (i % 16 == 0) net.world.run_for(20us);
  }
  net.world.run_for(10ms);
  std::string reply;
  // The hostile packets have spoilt the host's own channels. It can still call in a new life.
  crash(0);
  net[0].boot();
  EXPECT_EQ(call("honest", reply), Errc::ok);
  net.world.run_for(5min);
  EXPECT_EQ(statistics(1).state, 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc::mrpc
