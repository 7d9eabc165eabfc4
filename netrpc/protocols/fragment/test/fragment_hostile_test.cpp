// FRAGMENT against peers that lie, flood or disappear: what is dropped, and which state is left.
#include "length.h"
#include "netrpc/protocols/fragment/test/fragment_hosts.h"

namespace lrpc::netrpc {
namespace {

TEST_F(Fragment, a_message_for_another_host_or_in_anothers_name_is_dropped) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  Header wrong = data(1, 1, 3);
  wrong.svr_host = net.address(2);
  inject(a, 1, wrong, "abc");
  wrong = data(1, 1, 3);
  wrong.clnt_host = net.address(2);
  inject(a, 1, wrong, "abc");
  net.world.run_for(1ms);
  EXPECT_TRUE(b.sink->received.empty());
  EXPECT_EQ(b.statistics().refused, 2U);
  EXPECT_EQ(b.statistics().sessions, 0U);
}

TEST_F(Fragment, hostile_headers_are_dropped_and_counted) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const std::string bytes = text(100);
  std::vector<Header> bad{data(0, 1, 100), data(0, 0, 100),      data(17, 1, 100), data(65535, 1, 100),
                          data(1, 0, 100), data(1, 2, 100),      data(4, 3, 100),  data(4, 0x10, 100),
                          data(4, 0, 100), data(4, 0xffff, 100), data(1, 1, 101),  data(1, 1, 65535),
                          data(2, 1, 101), data(4, 1, 0),        data(4, 8, 0),    data(16, 0, 1)};
  for (const unsigned type : {0U, 3U, 4U, 255U}) {
    bad.push_back(data(1, 1, 100));
    bad.back().type = static_cast<std::uint8_t>(type);
  }
  for (const Header& header : bad) inject(a, 1, header, bytes);
  inject(a, 1, data(1, 1, 100), "");  // padded by the Ethernet, but to fewer than a hundred bytes
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().malformed, bad.size() + 1);
  EXPECT_TRUE(b.sink->received.empty());
  EXPECT_EQ(b.statistics().sessions, 0U);
  EXPECT_EQ(b.statistics().state, 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

TEST_F(Fragment, fragments_that_do_not_fit_each_other_are_dropped_and_the_message_still_arrives) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  inject(a, 1, data(3, 1, 500), text(500));
  inject(a, 1, data(4, 2, 500), text(500));  // another number of fragments
  inject(a, 1, data(3, 2, 499), text(499));  // another size
  inject(a, 1, data(3, 4, 501), text(501));  // a last fragment that is longer than the others
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().malformed, 3U);
  inject(a, 1, data(3, 4, 20), text(20));
  inject(a, 1, data(3, 2, 500), text(500));
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{text(500) + text(500) + text(20)});
  Header last_first = data(2, 2, 300);
  last_first.sequence_num = 78;
  inject(a, 1, last_first, text(300));
  last_first.frag_mask = 1;
  last_first.len = 299;
  inject(a, 1, last_first, text(299));
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().malformed, 4U);
}

TEST_F(Fragment, forged_requests_are_refused) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, text(5000)), Errc::ok);
  net.world.run_for(1ms);
  Header request = header(1, 0);
  request.type = fragment::kRequest;
  request.num_frag = 4;
  request.frag_mask = 1;
  inject(b, 0, request, "");  // for an unknown message
  request.frag_mask = 0;
  inject(b, 0, request, "");
  request.frag_mask = 0x10;
  inject(b, 0, request, "");
  request.frag_mask = 1;
  request.num_frag = 17;
  inject(b, 0, request, "");
  net.world.run_for(1ms);
  EXPECT_EQ(a.statistics().refused, 1U);
  EXPECT_EQ(a.statistics().malformed, 3U);
  EXPECT_EQ(a.statistics().retransmissions, 0U);
  Header stranger = request;
  stranger.clnt_host = net.address(2);
  FragmentHost c(net[2]);
  inject(c, 0, stranger, "");
  net.world.run_for(1ms);
  EXPECT_EQ(a.statistics().no_session, 1U);
  EXPECT_EQ(a.statistics().sessions, 1U) << "a request makes no session";
}

TEST_F(Fragment, one_message_answers_a_bounded_number_of_requests) {
  FragmentHost a(net[0]), b(net[1]);
  const SessionRef session = open(a, 1);
  Header sent;
  a.tap.on_push = [&](Session&, Message fragment) {
    Message::Header<Header::kSize> bytes;
    fragment.pop(bytes);
    sent = Header::decode(bytes.bytes);
  };
  EXPECT_EQ(push(a, session, text(16384)), Errc::ok);
  Header request = header(1, 0);
  request.type = fragment::kRequest;
  request.num_frag = sent.num_frag;
  request.sequence_num = sent.sequence_num;
  request.frag_mask = 0x0fff;
  for (int i = 0; i < 100; ++i) inject(b, 0, request, "");
  net.world.run_for(10ms);
  EXPECT_EQ(a.statistics().retransmissions, 32U * 12U);
  EXPECT_EQ(a.statistics().refused, 68U);
}

TEST_F(Fragment, a_sender_that_is_gone_is_asked_a_bounded_number_of_times_and_its_message_given_up) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef opened = open(b, 0);
  inject(a, 1, data(12, 1, 1000), text(1000));
  net.world.run_for(60s);
  EXPECT_EQ(b.statistics().sent, 20U);
  EXPECT_EQ(b.statistics().failed, 1U);
  EXPECT_EQ(b.statistics().state, 0U);
  inject(a, 1, data(12, 2, 1000), text(1000));
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().state, 0U) << "a fragment that comes late begins nothing";
}

/// A forged source address makes this host send requests to a third host: so their number is bounded.
TEST_F(Fragment, a_sender_that_was_only_heard_is_sent_three_requests_for_each_of_its_fragments) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  inject(a, 1, data(2, 1, 1), "x");
  net.world.run_for(60s);
  EXPECT_EQ(b.statistics().sent, 3U);
  EXPECT_EQ(b.statistics().failed, 1U);
  EXPECT_EQ(b.statistics().state, 0U);
  for (std::uint32_t i = 0; i < 100; ++i) {  // all at once: only a bounded number of requests is saved up
    Header whole = data(1, 1, 1);
    whole.sequence_num = 1000 + i;
    inject(a, 1, whole, "x");
    Header part = data(2, 1, 1);
    part.sequence_num = 2000 + i;
    inject(a, 1, part, "x");
  }
  net.world.run_for(60s);
  EXPECT_EQ(b.sink->received.size(), 100U);
  EXPECT_EQ(b.statistics().sent, 3U + 64U);
  EXPECT_EQ(b.statistics().state, 0U);
}

TEST_F(Fragment, saved_copies_are_discarded_when_their_time_has_passed) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  const SessionRef session = open(a, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(push(a, session, text(16384)), Errc::ok);
  EXPECT_EQ(a.statistics().state, 5U);
  EXPECT_EQ(push(a, session, "in one piece"), Errc::ok);
  EXPECT_EQ(a.statistics().state, 5U) << "who misses it cannot know: nothing is kept";
  net.world.run_for(5s);
  EXPECT_EQ(a.statistics().state, 0U);
  EXPECT_EQ(net[0].pool().in_use(), 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

TEST_F(Fragment, the_oldest_saved_copies_give_way) {
  FragmentHost a(net[0], {.saved = 3, .saved_bytes = 4 * BufferPool::kSizes[2]});
  const SessionRef one = open(a, 1);
  const SessionRef two = open(a, 2);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(push(a, one, text(3000)), Errc::ok);
  EXPECT_EQ(a.statistics().state, 3U);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(push(a, two, text(16000)), Errc::ok);
  EXPECT_EQ(a.statistics().state, 4U) << "four buffers of the largest size; the others were older";
}

TEST_F(Fragment, a_flood_of_first_fragments_from_fake_peers_takes_bounded_state_and_real_messages_get_through) {
  FragmentOptions options;
  options.sessions = 500;
  Tap& tap = net[1].add<Tap>(net[1].ethernet());
  auto made = make_fragment(net[1].host(), "fragment", tap, options);
  ASSERT_TRUE(made);
  Protocol& fragment = **made;
  net[1].own(std::shared_ptr<Protocol>(std::move(*made)));
  SinkProtocol& sink = net[1].add<SinkProtocol>();
  FakePeers fakes(tap);
  std::size_t most = 0;
  {
    const Shepherd inside(net[1].monitor());
    ASSERT_TRUE(fragment.open_enable(sink, SimHosts::anyone()));
  }
  const auto fake = [&](std::uint32_t host, std::uint16_t num_frag, std::uint16_t mask, const std::string& bytes) {
    Header header = data(num_frag, mask, bytes.size());
    header.clnt_host = {host};
    Message message = net.message(1, bytes);
    header.encode(message.push(Header::kSize));
    fakes.deliver(fragment, {host}, net.address(1), std::move(message));
  };
  const auto fakes_sent = static_cast<std::uint32_t>(testing_lrpc::rounds(12'500));
  std::size_t real = 0;
  for (std::uint32_t i = 0; i < fakes_sent; ++i) {
    const Shepherd inside(net[1].monitor());
    fake(0xac100000 + i, 12, 1, text(200));
    sink.sessions.clear();
    const auto counted = test::asked<control::Statistics>(fragment);
    most = std::max(most, counted.state + counted.sessions);
    if (i % 125 != 0) continue;
    ++real;
    for (std::uint16_t n = 0; n < 4; ++n)
      fake(0xac200000 + i, 4, static_cast<std::uint16_t>(1U << n), text(200, n + 1U));
    sink.sessions.clear();
  }
  EXPECT_LE(most, 500U + 256U);
  EXPECT_LE(net[1].pool().in_use(), 256U * 16U);
  // One host in sixteen finds the table full: the tries to evict meet only recently used peers. It must send again.
  EXPECT_GE(sink.received.size() * 10, real * 9);
  net.world.run_for(200s);
  const auto counted = test::asked<control::Statistics>(fragment);
  EXPECT_EQ(counted.state, 0U);
  EXPECT_EQ(counted.sessions, 0U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
}

TEST_F(Fragment, strangers_that_go_on_sending_leave_sessions_to_other_peers_and_to_this_host) {
  FragmentHost a(net[0]), b(net[1], {.sessions = 64});
  b.enable();
  FakePeers strangers(b.tap);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t i = 0; i < 64; ++i) {
      const Shepherd inside(net[1].monitor());
      Header whole = data(1, 1, 1);
      whole.clnt_host = {0xac100000 + i};
      Message message = net.message(1, "x");
      whole.encode(message.push(Header::kSize));
      strangers.deliver(*b.fragment, whole.clnt_host, net.address(1), std::move(message));
      b.sink->sessions.clear();  // the test keeps no session
    }
    net.world.run_for(20ms);
  }
  b.sink->received.clear();
  EXPECT_EQ(push(a, open(a, 1), "here"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{"here"});
  EXPECT_LE(b.statistics().sessions, 48U);
  const Shepherd inside(net[1].monitor());
  EXPECT_TRUE(b.fragment->open(*b.sink, net.to(2)));
}

TEST_F(Fragment, one_peer_has_a_bounded_number_of_incomplete_messages) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  for (std::uint32_t i = 0; i < 100; ++i) {
    Header first = data(12, 1, 1000);
    first.sequence_num = 1000 + i;
    inject(a, 1, first, text(1000));
  }
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().state, 16U);
}

TEST_F(Fragment, incomplete_messages_take_a_bounded_number_of_bytes_and_the_oldest_give_way) {
  FragmentHost a(net[0]), b(net[1], {.incomplete_bytes = 23 * BufferPool::kSizes[1]});  // one host's share: 10
  b.enable();
  for (std::uint32_t i = 0; i < 15; ++i) {
    Header first = data(12, 1, 1000);
    first.sequence_num = 1000 + i;
    inject(a, 1, first, text(1000));
  }
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().state, 10U);
  EXPECT_EQ(b.statistics().refused, 0U) << "who comes is not refused, who was there first goes";
  for (const std::uint32_t sequence : {1000U, 1014U}) {
    Header last = data(12, 2, 1000);
    last.sequence_num = sequence;
    inject(a, 1, last, text(1000));
  }
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().duplicates, 1U) << "what has given way is not begun again";
  EXPECT_EQ(b.statistics().state, 9U);
}

TEST_F(Fragment, an_incomplete_message_that_does_not_fit_alone_gives_way_to_itself) {
  FragmentHost a(net[0]), b(net[1], {.incomplete_bytes = 10 * BufferPool::kSizes[1]});
  b.enable();
  for (std::uint16_t i = 0; i < 11; ++i) {
    Header more = data(12, static_cast<std::uint16_t>(1U << i), 1000);
    more.sequence_num = 2000;
    inject(a, 1, more, text(1000));
  }
  net.world.run_for(1ms);
  EXPECT_EQ(b.statistics().state, 0U);
  EXPECT_EQ(b.statistics().refused, 1U);
  EXPECT_EQ(net[1].pool().in_use(), 0U);
  EXPECT_EQ(push(a, open(a, 1), text(9000)), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{text(9000)}) << "the count is right again";
}

TEST_F(Fragment, hosts_that_finish_no_message_do_not_make_the_messages_of_others_give_way) {
  FragmentHost a(net[0]), b(net[1], {.incomplete_bytes = 100 * BufferPool::kSizes[1]}), c(net[2]), d(net[3]);
  b.enable();
  inject(a, 1, data(2, 1, 1000), text(1000));
  const auto flood = [&](FragmentHost& from) {
    for (std::uint32_t i = 0; i < 16 * 15; ++i) {
      Header part = data(16, static_cast<std::uint16_t>(1U << i % 15), 1000);
      part.clnt_host = from.machine.address();
      part.sequence_num = 1000 + i / 15;
      inject(from, 1, part, text(1000));
    }
  };
  flood(c);
  flood(d);
  net.world.run_for(1ms);
  inject(a, 1, data(2, 2, 500), text(500));
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{text(1000) + text(500)});
}

TEST_F(Fragment, fragments_in_buffers_of_the_largest_size_leave_memory_to_others) {
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  FakePeers fakes(b.tap);
  for (const std::size_t len : {std::size_t{1}, std::size_t{2300}}) {  // fragments of one byte: the rest is padding
    for (std::uint32_t i = 0; i < 16 * 16 * 15; ++i) {
      const Shepherd inside(net[1].monitor());
      Header part = data(16, static_cast<std::uint16_t>(1U << i % 15), len);
      part.clnt_host = {0xac100000 + i / 15 % 16};
      part.sequence_num = static_cast<std::uint32_t>(len) + i / 240;
      Message message = net.message(1, std::string(2300, 'x'));
      ASSERT_TRUE(message.allocated());
      part.encode(message.push(Header::kSize));
      fakes.deliver(*b.fragment, part.clnt_host, net.address(1), std::move(message));
    }
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(Message::make(net[1].pool(), 16384).allocated());
  }
  EXPECT_EQ(push(a, open(a, 1), text(9000)), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{text(9000)});
}

TEST_F(Fragment, nothing_is_left_after_idle_state_was_dropped) {
  net.world.set_links({.loss = 0.1});
  FragmentHost a(net[0]), b(net[1]);
  b.enable();
  {
    const SessionRef session = open(a, 1);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(push(a, session, text(16384)), Errc::ok);
  }
  net.world.run_for(30s);
  a.drop_idle();
  b.drop_idle();
  for (FragmentHost* host : {&a, &b}) {
    EXPECT_EQ(host->statistics().sessions, 0U);
    EXPECT_EQ(host->statistics().state, 0U);
    EXPECT_EQ(host->machine.pool().in_use(), 0U);
  }
}

TEST_F(Fragment, damaged_packets_do_no_harm) {
  net.world.set_links({.loss = 0.05, .duplicate = 0.1, .reorder = 0.2, .corrupt = 0.3});
  FragmentHost a(net[0]), b(net[1]);
  a.enable();
  b.enable();
  b.sink->echo = true;
  const SessionRef session = open(a, 1);
  for (unsigned i = 0; i < 300; ++i) {
    EXPECT_EQ(push(a, session, text(i * 71 % 20000, i)), Errc::ok);
    net.world.run_for(2ms);
  }
  net.world.run_for(30s);
  EXPECT_GT(b.sink->received.size(), 100U);
  a.drop_idle();
  b.drop_idle();
  EXPECT_EQ(a.statistics().state + b.statistics().state, 0U);
  EXPECT_EQ(net[0].pool().in_use() + net[1].pool().in_use(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc
