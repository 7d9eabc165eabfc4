// FRAGMENT packet by packet, in virtual time.
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/protocols/fragment/test/fragment_hosts.h"

namespace lrpc::netrpc {
namespace {

TEST_F(Fragment, the_header_is_the_papers) {
  Header made;
  made.type = fragment::kRequest;
  made.clnt_host = {0x0a000001};
  made.svr_host = {0x0a000002};
  made.protocol_num = 0x01020304;
  made.sequence_num = 0x05060708;
  made.num_frag = 12;
  made.frag_mask = 0x0a05;
  made.len = 0x1234;
  std::array<std::byte, Header::kSize> bytes{};
  made.encode(bytes.data());
  const std::array<unsigned char, Header::kSize> expected{2, 10, 0, 0, 1, 10, 0,  0,    2,    1,    2,   3,
                                                          4, 5,  6, 7, 8, 0,  12, 0x0a, 0x05, 0x12, 0x34};
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const std::byte*>(expected.data())));
  const Header back = Header::decode(bytes.data());
  EXPECT_EQ(back.type, made.type);
  EXPECT_EQ(back.clnt_host, made.clnt_host);
  EXPECT_EQ(back.svr_host, made.svr_host);
  EXPECT_EQ(back.protocol_num, made.protocol_num);
  EXPECT_EQ(back.sequence_num, made.sequence_num);
  EXPECT_EQ(back.num_frag, made.num_frag);
  EXPECT_EQ(back.frag_mask, made.frag_mask);
  EXPECT_EQ(back.len, made.len);
}

TEST_F(Fragment, messages_of_every_size_arrive_as_they_were_and_what_is_too_long_is_refused) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(test::asked<control::OptimumMessage>(*session).size, kCut);
  EXPECT_EQ(test::asked<control::MaximumMessage>(*session).size, 16 * kCut);
  EXPECT_GT(12 * kCut, 16384U);
  std::vector<std::string> sent;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{37}, kCut - 1, kCut, kCut + 1, 2 * kCut,
                                 std::size_t{5000}, std::size_t{16384}, std::size_t{20000}}) {
    sent.push_back(text(size, static_cast<unsigned>(size + 1)));
    EXPECT_EQ(push(a, session, sent.back()), Errc::ok);
    net.world.run_for(1ms);
  }
  EXPECT_EQ(b.sink->received, sent);
  EXPECT_EQ(b.sink->opened.size(), 1U);
  EXPECT_EQ(b.statistics().received, sent.size());
  FragmentHost c(net[2], {.fragments = 2});
  EXPECT_EQ(push(c, open(c, 1), text(2 * kCut + 1)), Errc::message_too_long);
  EXPECT_EQ(c.statistics().sent, 0U);
}

TEST_F(Fragment, the_fragments_share_the_messages_bytes) {
  FragmentHost a(net[0]), b(net[1]);
  const SessionRef session = open(a, 1);
  const Shepherd inside(net[0].monitor());
  Message message = net.message(0, text(16384));
  const std::byte* const first = message.bytes().data();
  std::set<const std::byte*> seen;
  a.tap.on_push = [&](Session&, Message fragment) {
    std::array<iovec, 4> parts{};
    const std::size_t count = fragment.describe(parts);
    ASSERT_GE(count, 1U);
    const iovec& data = parts[count - 1];
    const auto* const end = static_cast<const std::byte*>(data.iov_base) + data.iov_len;
    EXPECT_TRUE(end > first && end <= first + 16384) << "a copy";
    seen.insert(end);
  };
  EXPECT_EQ(session->push(std::move(message)), Errc::ok);
  EXPECT_EQ(seen.size(), 12U);
}

TEST_F(Fragment, fragments_may_arrive_in_any_order) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  std::minstd_rand random(3);
  std::vector<std::string> sent;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::pair<Session*, Message>> held;
    a.tap.on_push = [&](Session& lower, Message fragment) { held.emplace_back(&lower, std::move(fragment)); };
    sent.push_back(text(9000, static_cast<unsigned>(round)));
    EXPECT_EQ(push(a, session, sent.back()), Errc::ok);
    a.tap.on_push = nullptr;
    std::shuffle(held.begin(), held.end(), random);
    {
      const Shepherd inside(net[0].monitor());
      for (auto& [lower, fragment] : held) EXPECT_EQ(lower->push(std::move(fragment)), Errc::ok);
    }
    net.world.run_for(1ms);
  }
  EXPECT_EQ(b.sink->received, sent);
}

TEST_F(Fragment, each_single_fragment_that_is_lost_is_asked_for_and_nothing_else) {
  for (unsigned lost = 0; lost < 12; ++lost) {
    SCOPED_TRACE(lost);
    SimHosts pair(2);
    FragmentHost a(pair[0]), b(pair[1]);
    b.enable();
    SessionRef session;
    {
      const Shepherd inside(pair[0].monitor());
      session = *a.fragment->open(*a.sink, pair.to(1));
      unsigned at = 0;
      a.tap.on_push = [&](Session& lower, Message fragment) {
        if (at++ != lost) (void)lower.push(std::move(fragment));
      };
      EXPECT_EQ(session->push(pair.message(0, text(16384))), Errc::ok);
      a.tap.on_push = nullptr;
    }
    pair.world.run_for(50ms);
    EXPECT_EQ(b.sink->received, std::vector<std::string>{text(16384)});
    EXPECT_EQ(a.statistics().retransmissions, 1U);
    EXPECT_EQ(b.statistics().sent, 1U) << "one request, and never an acknowledgement";
  }
}

TEST_F(Fragment, a_message_of_which_one_fragment_has_arrived_is_recovered) {
  for (unsigned kept = 0; kept < 12; ++kept) {
    SCOPED_TRACE(kept);
    SimHosts pair(2);
    FragmentHost a(pair[0]), b(pair[1]);
    b.enable();
    {
      const Shepherd inside(pair[0].monitor());
      const SessionRef session = *a.fragment->open(*a.sink, pair.to(1));
      unsigned at = 0;
      a.tap.on_push = [&](Session& lower, Message fragment) {
        if (at++ == kept) (void)lower.push(std::move(fragment));
      };
      EXPECT_EQ(session->push(pair.message(0, text(16384))), Errc::ok);
      a.tap.on_push = nullptr;
    }
    pair.world.run_for(100ms);
    EXPECT_EQ(b.sink->received, std::vector<std::string>{text(16384)});
    EXPECT_LE(a.statistics().retransmissions, 11U + kept);
  }
}

TEST_F(Fragment, a_message_that_is_asked_for_in_vain_does_not_make_others_wait_longer) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  const auto push_without = [&](unsigned lost) {
    unsigned at = 0;
    a.tap.on_push = [&](Session& lower, Message fragment) {
      if (at++ != lost) (void)lower.push(std::move(fragment));
    };
    EXPECT_EQ(push(a, session, text(3 * kCut)), Errc::ok);
    a.tap.on_push = nullptr;
  };
  for (int i = 0; i < 20; ++i) {  // then the round trip of 20 us is known
    push_without(1);
    net.world.run_for(1ms);
  }
  ASSERT_EQ(b.sink->received.size(), 20U);
  const std::uint64_t asked = b.statistics().sent;
  inject(a, 1, data(2, 1, 100), text(100));  // its other half is never sent
  net.world.run_for(20ms);
  EXPECT_GT(b.statistics().sent, asked + 4);
  push_without(2);  // the last fragment: only silence shows that it is missing
  net.world.run_for(200us);
  EXPECT_EQ(b.sink->received.size(), 21U);
}

/// The round trip of 20 us is known. What arrives at once takes 10 us; each request for lost fragments adds 20 us.
TEST_F(Fragment, what_is_lost_is_asked_for_as_soon_as_something_that_was_sent_later_has_arrived) {
  struct Case {
    std::set<unsigned> lost;  ///< By order of sending: fragments 0 to 5, then retransmissions.
    Duration takes;
  };
  const Case cases[] = {
      {{2}, 30us},           // a gap
      {{5}, 50us},           // the last one: asked for once it is a round trip late
      {{1, 3, 6}, 50us},     // gaps, and the first half of an answer: asked for when the other half arrives
      {{1, 2, 5, 6}, 50us},  // the last one is asked for then, too: the answer was sent after it
      {{1, 5, 6}, 70us},     // a whole answer: asked for after two round trips
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(testing::PrintToString(one.lost));
    SimHosts pair(2);
    FragmentHost a(pair[0]), b(pair[1]);
    b.enable();
    SessionRef session;
    const auto push_without = [&](const std::set<unsigned>& lost) {
      const Shepherd inside(pair[0].monitor());
      if (!session) session = *a.fragment->open(*a.sink, pair.to(1));
      a.tap.on_push = [&lost, at = 0U](Session& lower, Message fragment) mutable {
        if (!lost.contains(at++)) (void)lower.push(std::move(fragment));
      };
      EXPECT_EQ(session->push(pair.message(0, text(6 * kCut))), Errc::ok);
    };
    const std::set<unsigned> gap{1};
    for (int i = 0; i < 20; ++i) {
      push_without(gap);
      pair.world.run_for(1ms);
    }
    ASSERT_EQ(b.sink->received.size(), 20U);
    push_without(one.lost);
    pair.world.run_for(one.takes - 1us);
    EXPECT_EQ(b.sink->received.size(), 20U);
    pair.world.run_for(2us);
    EXPECT_EQ(b.sink->received.size(), 21U);
  }
}

TEST_F(Fragment, nothing_is_ever_acknowledged) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(push(a, session, text(16384)), Errc::ok);
    net.world.run_for(1ms);
  }
  net.world.run_for(10s);
  EXPECT_EQ(b.sink->received.size(), 10U);
  EXPECT_EQ(b.statistics().sent, 0U);
}

TEST_F(Fragment, duplicates_of_fragments_are_dropped_and_begin_nothing_anew) {
  net.world.set_links({.duplicate = 1});
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(push(a, session, text(16384, i)), Errc::ok);
    net.world.run_for(1ms);
  }
  net.world.run_for(1s);
  EXPECT_EQ(b.sink->received.size(), 10U);
  EXPECT_EQ(b.statistics().duplicates, 120U);
  EXPECT_EQ(b.statistics().sent, 0U) << "no requests";
  EXPECT_EQ(b.statistics().state, 0U);
}

TEST_F(Fragment, messages_of_several_peers_and_several_messages_of_one_interleave) {
  net.world.set_links({.latency = 10us, .jitter = 2ms});
  FragmentHost b(net[1]);
  b.enable();
  std::vector<std::unique_ptr<FragmentHost>> peers;
  std::multiset<std::string> sent;
  for (std::size_t i = 2; i < 6; ++i) {
    peers.push_back(std::make_unique<FragmentHost>(net[i]));
    const SessionRef session = open(*peers.back(), 1);
    for (unsigned n = 0; n < 5; ++n) {
      const std::string message = text(7000 + 100 * i + n, static_cast<unsigned>(i * 10 + n));
      sent.insert(message);
      EXPECT_EQ(push(*peers.back(), session, message), Errc::ok);
    }
  }
  net.world.run_for(200ms);
  EXPECT_EQ(std::multiset<std::string>(b.sink->received.begin(), b.sink->received.end()), sent);
  EXPECT_EQ(b.statistics().state, 0U);
}

TEST_F(Fragment, protocols_above_have_numbers_of_their_own) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  SinkProtocol& other = net[1].add<SinkProtocol>("other");
  {
    const Shepherd inside(net[1].monitor());
    ASSERT_TRUE(b.fragment->open_enable(other, SimHosts::anyone(70000)));
    EXPECT_EQ(b.fragment->open_enable(*b.sink, SimHosts::anyone(70000)).code(), Errc::name_taken);
  }
  const SessionRef one = open(a, 1);
  const SessionRef two = open(a, 1, 70000);
  const SessionRef nobody = open(a, 1, 70001);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(push(a, one, "one"), Errc::ok);
    EXPECT_EQ(push(a, two, text(3000)), Errc::ok);
    EXPECT_EQ(push(a, nobody, "nobody"), Errc::ok);
  }
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>(3, "one"));
  EXPECT_EQ(other.received, std::vector<std::string>(3, text(3000)));
  EXPECT_EQ(b.statistics().no_session, 3U);
}

TEST_F(Fragment, nothing_is_allocated_for_messages_once_warm) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  b.sink->echo = true;
  const SessionRef session = open(a, 1);
  const auto round = [&] {
    ASSERT_EQ(push(a, session, "small"), Errc::ok);
    ASSERT_EQ(push(a, session, text(16384)), Errc::ok);
    net.world.run_for(1ms);
  };
  for (int i = 0; i < 200; ++i) round();
  const std::uint64_t before = net[0].pool().allocations() + net[1].pool().allocations();
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(net[0].pool().allocations() + net[1].pool().allocations(), before);
}

TEST_F(Fragment, sixteen_kilobytes_persist_where_a_fifth_of_all_packets_is_lost) {
  net.world.set_links({.latency = 50us, .loss = 0.2});
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  std::set<std::string> sent;
  for (unsigned i = 0; i < 500; ++i) {
    sent.insert(text(16384, i));
    EXPECT_EQ(push(a, session, text(16384, i)), Errc::ok);
    net.world.run_for(5ms);
  }
  net.world.run_for(5s);
  EXPECT_GE(b.sink->received.size(), 495U);
  for (const std::string& message : b.sink->received) EXPECT_TRUE(sent.contains(message));
}

TEST_F(Fragment, it_adapts_to_a_wire_a_thousand_times_slower) {
  net.world.set_links({.latency = 50ms, .jitter = 5ms, .loss = 0.1});
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_EQ(push(a, session, text(16384, i)), Errc::ok);
    net.world.run_for(500ms);
  }
  net.world.run_for(10s);
  EXPECT_GE(b.sink->received.size(), 97U);
  EXPECT_LE(a.statistics().retransmissions, 400U) << "hardly more than was lost";
}

TEST_F(Fragment, options_that_make_no_sense_are_refused) {
  Tap& tap = net[0].add<Tap>(net[0].ethernet());
  for (const FragmentOptions& options :
       {FragmentOptions{.fragments = 0}, FragmentOptions{.fragments = 17}, FragmentOptions{.reassemblies = 0},
        FragmentOptions{.sessions = 0}, FragmentOptions{.idle = 0s}, FragmentOptions{.fragment_size = 70000}})
    EXPECT_EQ(make_fragment(net[0].host(), "fragment", tap, options).code(), Errc::invalid_argument);
}

TEST_F(Fragment, a_link_that_has_shrunk_is_noticed_and_the_message_cut_smaller) {
  for (const std::size_t first : {kCut, std::size_t{5000}}) {
    SimHosts pair(2);
    FragmentHost a(pair[0]), b(pair[1]);
    b.enable();
    const Shepherd inside(pair[0].monitor());
    auto session = a.fragment->open(*a.sink, pair.to(1));
    ASSERT_TRUE(session);
    static_cast<SimEthernet&>(pair[0].ethernet()).set_mtu(1400);
    EXPECT_EQ((*session)->push(pair.message(0, text(first))), Errc::ok);
    pair.world.run_for(10ms);
    EXPECT_EQ(b.sink->received, std::vector<std::string>{text(first)});
    EXPECT_EQ(test::asked<control::OptimumMessage>(**session).size, 1400 - Header::kSize);
  }
}

TEST_F(Fragment, a_message_of_which_no_copy_is_kept_is_not_too_long_where_a_link_has_shrunk) {
  FragmentHost a(net[0], {.saved = 0}), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  static_cast<SimEthernet&>(net[0].ethernet()).set_mtu(1400);
  EXPECT_EQ(push(a, session, text(5000)), Errc::limit_reached) << "sent again, it arrives";
  EXPECT_EQ(push(a, session, text(5000)), Errc::ok);
  net.world.run_for(10ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{text(5000)});
}

TEST(FragmentWithoutRoom, says_whether_it_has_as_many_sessions_as_it_may_or_its_host_is_short_of_memory) {
  PacketWire wire(1);
  bool short_of_memory = false;
  HostOptions options;
  options.address = PacketWire::address(0);
  options.seed = 7;
  options.short_of_memory = [&] { return short_of_memory; };
  Host host(options, wire.clock, wire);
  const Shepherd inside(host.monitor());
  WireEnd end(host, wire, 0);
  SinkProtocol sink(host);
  const auto fragment = make_fragment(host, "fragment", end, {.sessions = 1});
  ASSERT_TRUE(fragment);
  const auto open = [&](std::size_t to) {
    ParticipantSet participants = SimHosts::anyone();
    participants.remote.host = PacketWire::address(to);
    return (*fragment)->open(sink, participants);
  };
  const auto first = open(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(open(2).code(), Errc::limit_reached);
  EXPECT_EQ(open(2).error().text, "fragment has as many sessions as it may have");
  short_of_memory = true;
  EXPECT_EQ(open(2).code(), Errc::limit_reached);
  EXPECT_EQ(open(2).error().text, "fragment: this host is short of memory");
}

}  // namespace
}  // namespace lrpc::netrpc
