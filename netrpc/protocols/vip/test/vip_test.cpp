// VIP packet by packet, in virtual time.
#include "netrpc/protocols/vip/test/vip_host.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

class Vip : public ::testing::Test {
 protected:
  /// Opens a session from `from` to the host numbered `to`.
  Session& open(VipHost& from, std::size_t to) {
    const Shepherd inside(from.machine.monitor());
    auto opened = from.vip->open(*from.sink, net.to(to));
    EXPECT_TRUE(opened) << opened.error().message();
    from.sink->sessions.push_back(*opened);
    return *from.sink->sessions.back();
  }
  void enable(VipHost& host) {
    const Shepherd inside(host.machine.monitor());
    ASSERT_TRUE(host.vip->open_enable(*host.sink, SimHosts::anyone()));
  }
  Errc push(VipHost& from, Session& session, std::size_t size) {
    const Shepherd inside(from.machine.monitor());
    return session.push(net.message(from.machine.index(), std::string(size, 'x')));
  }
  static control::Statistics statistics(Protocol& protocol) { return test::asked<control::Statistics>(protocol); }

  SimHosts net{3, 1};
};

TEST_F(Vip, a_small_message_to_a_local_host_goes_over_the_ethernet_and_ip_is_not_even_opened) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->received.size(), 1U);
  EXPECT_EQ(b.sink->received[0], std::string(100, 'x'));
  EXPECT_EQ(b.sink->from[0], net.address(0));
  EXPECT_EQ(a.ethernet.pushed, 1);
  EXPECT_EQ(a.ip.opened, 0);
  EXPECT_EQ(b.ip.opened, 0);
}

TEST_F(Vip, a_host_that_arp_does_not_resolve_is_reached_over_ip) {
  SimHosts apart(2, 2);
  VipHost a(apart[0]), b(apart[1]);
  enable(b);
  {
    const Shepherd inside(apart[0].monitor());
    auto opened = a.vip->open(*a.sink, apart.to(1));
    ASSERT_TRUE(opened);
    EXPECT_EQ((*opened)->push(apart.message(0, "far")), Errc::ok);
  }
  apart.world.run_for(10ms);
  EXPECT_EQ(b.sink->received, std::vector<std::string>{"far"});
  EXPECT_EQ(a.ethernet.pushed, 0);
  EXPECT_EQ(a.ip.pushed, 1);
}

TEST_F(Vip, a_high_protocol_that_sends_large_messages_has_both_and_each_message_goes_by_its_length) {
  VipHost a(net[0]), b(net[1]);
  a.sink->advertised = 60000;
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(a.ip.opened, 1);
  EXPECT_EQ(push(a, session, 1500), Errc::ok);
  EXPECT_EQ(a.ethernet.pushed, 1);
  EXPECT_EQ(push(a, session, 1501), Errc::ok);
  EXPECT_EQ(a.ip.pushed, 1);
  net.world.run_for(10ms);
  ASSERT_EQ(b.sink->received.size(), 2U);
  EXPECT_EQ(b.sink->sessions.size(), 1U) << "one VIP session, whichever way the messages came";
  EXPECT_EQ(b.sink->opened.size(), 1U);
}

TEST_F(Vip, a_high_protocol_that_does_not_say_what_it_sends_is_taken_to_send_anything) {
  class Mute final : public Protocol {
   public:
    explicit Mute(Host& host) : Protocol(host, "mute") {}
  };
  VipHost a(net[0]);
  Mute& mute = net[0].add<Mute>();
  const Shepherd inside(net[0].monitor());
  ASSERT_TRUE(a.vip->open(mute, net.to(1)));
  EXPECT_EQ(a.ethernet.opened, 1);
  EXPECT_EQ(a.ip.opened, 1);
}

TEST_F(Vip, answers_come_back_through_the_session_that_was_opened) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  b.sink->echo = true;
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 700), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(a.sink->received.size(), 1U);
  EXPECT_TRUE(a.sink->opened.empty()) << "nothing was made passively";
  EXPECT_EQ(statistics(*a.vip).sessions, 1U);
}

TEST_F(Vip, an_answer_that_comes_over_ip_to_what_was_sent_over_the_ethernet_finds_the_session) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  EXPECT_EQ(push(b, *b.sink->sessions[0], 5000), Errc::ok) << "IP is opened when it is needed";
  net.world.run_for(10ms);
  ASSERT_EQ(a.sink->received.size(), 1U);
  EXPECT_EQ(a.sink->received[0].size(), 5000U);
  EXPECT_TRUE(a.sink->opened.empty());
  EXPECT_EQ(statistics(*a.vip).sessions, 1U);
}

TEST_F(Vip, strangers_are_refused_where_a_number_is_only_opened_and_not_enabled) {
  VipHost a(net[0]), b(net[1]), c(net[2]);
  open(a, 1);
  Session& stranger = open(c, 0);
  EXPECT_EQ(push(c, stranger, 10), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_TRUE(a.sink->received.empty());
  EXPECT_EQ(statistics(*a.vip).no_session, 1U);
  EXPECT_EQ(statistics(*a.vip).sessions, 1U);
}

TEST_F(Vip, a_peer_whose_host_nobody_knows_is_answered_through_its_ethernet_session_alone) {
  VipHost a(net[0]), b(net[1]);
  b.ethernet.hide_hosts = true;
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  Session& passive = *b.sink->sessions[0];
  EXPECT_FALSE(passive.peer().known());
  EXPECT_EQ(push(b, passive, 100), Errc::ok);
  EXPECT_EQ(push(b, passive, 1501), Errc::message_too_long);
  net.world.run_for(1ms);
  EXPECT_EQ(a.sink->received.size(), 1U);
  EXPECT_EQ(b.ip.opened, 0);
}

TEST_F(Vip, a_stranger_that_this_host_opens_to_is_met_in_the_session_that_it_has) {
  VipHost a(net[0]), b(net[1]);
  b.ethernet.hide_hosts = true;
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  Session& passive = *b.sink->sessions[0];
  EXPECT_EQ(&open(b, 0), &passive);
  EXPECT_EQ(passive.peer(), net.address(0));
  EXPECT_EQ(statistics(*b.vip).sessions, 1U);
  EXPECT_EQ(&open(b, 0), &passive) << "found by its host from now on";
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  EXPECT_EQ(push(b, passive, 1501), Errc::ok) << "there is IP now";
  net.world.run_for(10ms);
  EXPECT_EQ(b.sink->received.size(), 2U);
  EXPECT_EQ(b.sink->opened.size(), 1U);
  EXPECT_EQ(a.sink->received.size(), 1U);
}

TEST_F(Vip, a_stranger_that_comes_over_ip_too_is_met_in_the_session_that_it_has) {
  VipHost a(net[0]), b(net[1]);
  b.ethernet.hide_hosts = true;
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  a.ethernet.broken = true;
  EXPECT_EQ(push(a, session, 100), Errc::host_unreachable);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received.size(), 2U);
  EXPECT_EQ(b.sink->opened.size(), 1U) << "a second session would let CHANNEL execute a request twice";
  EXPECT_EQ(b.sink->from[1], net.address(0));
  EXPECT_EQ(statistics(*b.vip).sessions, 1U);
  b.sink->sessions.clear();
  net.world.run_for(200s);
  EXPECT_EQ(statistics(*b.vip).sessions, 0U);
  b.ethernet.kept.clear();
  net.world.run_for(60s);
  a.ethernet.broken = false;
  open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_FALSE(b.sink->from[2].known()) << "a stranger again";
}

TEST_F(Vip, of_two_addresses_of_one_machine_the_second_leaves_the_ethernet_to_the_first) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  b.sink->echo = true;
  a.ethernet.alias = net.address(2);
  a.ethernet.machine_of_alias = net[1].ethernet_address();
  Session& first = open(a, 1);
  Session& second = open(a, 2);
  EXPECT_NE(&first, &second);
  EXPECT_EQ(push(a, second, 100), Errc::ok);
  EXPECT_EQ(a.ethernet.pushed, 0);
  EXPECT_EQ(a.ip.pushed, 1);
  EXPECT_EQ(push(a, first, 100), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(a.ethernet.pushed, 1);
  EXPECT_EQ(a.sink->from, std::vector<HostAddress>{net.address(1)});
}

TEST_F(Vip, after_the_ethernet_has_failed_ip_is_used_until_it_may_be_tried_again) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  Session& session = open(a, 1);
  a.ethernet.broken = true;
  EXPECT_EQ(push(a, session, 10), Errc::host_unreachable);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(a.ip.pushed, 1);
  a.ethernet.broken = false;
  open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(a.ip.pushed, 2) << "not so soon";
  net.world.run_for(11s);
  open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(a.ethernet.pushed, 1);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received.size(), 3U);
}

TEST_F(Vip, a_host_that_becomes_local_is_reached_over_the_ethernet_from_the_next_open_on) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  a.ethernet.resolves = false;
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(a.ip.pushed, 1);
  a.ethernet.resolves = true;
  EXPECT_EQ(&open(a, 1), &session);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(a.ethernet.pushed, 1);
}

TEST_F(Vip, an_open_that_no_way_leads_to_fails) {
  VipHost a(net[0]);
  ParticipantSet nobody = net.to(1);
  nobody.remote.host = *parse_host("192.0.2.1");
  const Shepherd inside(net[0].monitor());
  EXPECT_EQ(a.vip->open(*a.sink, nobody).code(), Errc::host_unreachable);
  nobody.remote.host = {};
  EXPECT_EQ(a.vip->open(*a.sink, nobody).code(), Errc::invalid_argument);
  ParticipantSet number = net.to(1, 256);
  EXPECT_EQ(a.vip->open(*a.sink, number).code(), Errc::invalid_argument);
  EXPECT_EQ(statistics(*a.vip).sessions, 0U);
}

TEST_F(Vip, a_number_belongs_to_one_protocol_and_is_given_back) {
  VipHost a(net[0]);
  enable(a);
  SinkProtocol& other = net[0].add<SinkProtocol>("other");
  const Shepherd inside(net[0].monitor());
  EXPECT_EQ(a.vip->open_enable(other, SimHosts::anyone()).code(), Errc::name_taken);
  a.vip->open_disable(*a.sink, SimHosts::anyone());
  EXPECT_EQ(a.ethernet.enabled, 0);
  EXPECT_EQ(a.ip.enabled, 0);
  EXPECT_TRUE(a.vip->open_enable(other, SimHosts::anyone()));
}

TEST_F(Vip, sessions_that_nobody_refers_to_go_when_idle_and_at_once_when_told) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  Session& session = open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(statistics(*b.vip).sessions, 1U);
  b.sink->sessions.clear();
  {
    const Shepherd inside(net[1].monitor());
    control::Request drop = control::DropIdle{};
    EXPECT_EQ(b.vip->control(drop), Errc::ok);
  }
  EXPECT_EQ(statistics(*b.vip).sessions, 0U);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(b.sink->received.size(), 2U) << "made again";
  a.sink->sessions.clear();
  net.world.run_for(61s);
  EXPECT_EQ(statistics(*a.vip).sessions, 0U);
}

TEST_F(Vip, peers_cannot_make_more_sessions_than_the_limit) {
  SimHosts many(12);
  VipHost b(many[0], {.sessions = 5});  // one of them is reserved for sessions that this host opens
  b.sink->accept = Errc::ok;
  {
    const Shepherd inside(many[0].monitor());
    ASSERT_TRUE(b.vip->open_enable(*b.sink, SimHosts::anyone()));
  }
  for (std::size_t i = 1; i < 12; ++i) {
    VipHost peer(many[i]);
    {
      const Shepherd inside(many[i].monitor());
      auto opened = peer.vip->open(*peer.sink, many.to(0));
      ASSERT_TRUE(opened);
      for (int n = 0; n < 3; ++n) EXPECT_EQ((*opened)->push(many.message(i, "hello")), Errc::ok);
    }
    many.world.run_for(1ms);
    EXPECT_LE(statistics(*b.vip).sessions, 4U);
  }
  EXPECT_EQ(b.sink->received.size(), 12U) << "the four whose sessions are held";
  b.sink->sessions.clear();
  EXPECT_GE(statistics(*b.vip).refused, 7U);
}

TEST_F(Vip, maximum_and_optimum_follow_what_is_open) {
  VipHost a(net[0]);
  Session& small = open(a, 1);
  EXPECT_EQ(test::asked<control::MaximumMessage>(small).size, 1500U);
  EXPECT_EQ(test::asked<control::OptimumMessage>(small).size, 1500U);
  a.sink->advertised = 10000;
  Session& large = open(a, 2);
  EXPECT_EQ(test::asked<control::MaximumMessage>(large).size, 65515U);
  EXPECT_EQ(test::asked<control::OptimumMessage>(large).size, 1500U);
  EXPECT_EQ(test::asked<control::OptimumMessage>(*a.vip).size, 1480U) << "what goes uncut either way";
}

TEST_F(Vip, nothing_is_allocated_for_a_message_after_the_first_ones) {
  VipHost a(net[0]), b(net[1]);
  enable(b);
  b.sink->echo = true;
  Session& session = open(a, 1);
  const auto round = [&] {
    ASSERT_EQ(push(a, session, 64), Errc::ok);
    net.world.run_for(1ms);
  };
  for (int i = 0; i < 4; ++i) round();
  const std::uint64_t before = net[0].pool().allocations() + net[1].pool().allocations();
  for (int i = 0; i < 100; ++i) round();
  EXPECT_EQ(net[0].pool().allocations() + net[1].pool().allocations(), before);
  EXPECT_EQ(net[0].pool().in_use() + net[1].pool().in_use(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc
