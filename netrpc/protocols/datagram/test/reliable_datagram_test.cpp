#include "netrpc/protocols/datagram/reliable_datagram.h"

#include <gtest/gtest.h>

#include <set>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/channel/test/packet_wire.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

struct DatagramHosts : SimHosts {
  explicit DatagramHosts(ReliableDatagramOptions options = {}) : SimHosts(2) {
    if (!options.failed) options.failed = [this](HostAddress, ProtocolNumber, Errc why) { failures.push_back(why); };
    for (std::size_t i = 0; i < 2; ++i) {
      SimHost& machine = world.host(i);
      channels[i] = make_channel(machine.host(), "channel", machine.ethernet());
      datagrams[i] = make_reliable_datagram(machine.host(), "datagram", *channels[i], options);
      sinks[i] = std::make_unique<SinkProtocol>(machine.host());
    }
  }
  ~DatagramHosts() {
    session = {};
    for (auto& sink : sinks) sink->sessions.clear();
  }
  DatagramHosts(const DatagramHosts&) = delete;
  DatagramHosts& operator=(const DatagramHosts&) = delete;
  void enable() {
    const Shepherd inside(world.host(1).monitor());
    EXPECT_TRUE(datagrams[1]->open_enable(*sinks[1], anyone()));
  }
  void open() {
    const Shepherd inside(world.host(0).monitor());
    session = *datagrams[0]->open(*sinks[0], to(1));
  }
  Errc push(std::string_view text) {
    const Shepherd inside(world.host(0).monitor());
    return session->push(message(0, text));
  }
  [[nodiscard]] static control::Statistics statistics(Protocol& protocol) {
    return test::asked<control::Statistics>(protocol);
  }
  std::unique_ptr<Protocol> channels[2];
  std::unique_ptr<Protocol> datagrams[2];
  std::unique_ptr<SinkProtocol> sinks[2];
  SessionRef session;
  std::vector<Errc> failures;
};

TEST(ReliableDatagramTest, a_message_arrives_and_its_session_leads_back) {
  DatagramHosts net;
  net.enable();
  net.open();
  EXPECT_EQ(net.push("hello"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(net.sinks[1]->received, std::vector<std::string>{"hello"});
  ASSERT_EQ(net.sinks[1]->sessions.size(), 1U);
  EXPECT_EQ(net.sinks[1]->sessions[0]->peer(), net.address(0));
  {
    const Shepherd inside(net[0].monitor());
    EXPECT_TRUE(net.datagrams[0]->open_enable(*net.sinks[0], SimHosts::anyone()));
  }
  {
    const Shepherd inside(net[1].monitor());
    EXPECT_EQ(net.sinks[1]->sessions[0]->push(net.message(1, "back")), Errc::ok);
  }
  net.world.run_for(1ms);
  EXPECT_EQ(net.sinks[0]->received, std::vector<std::string>{"back"});
}

TEST(ReliableDatagramTest, every_message_arrives_once_over_a_wire_that_loses_and_repeats) {
  DatagramHosts net({.queue = 1000, .failed = {}});
  net.world.link(0).loss = 0.2;
  net.world.link(0).duplicate = 0.2;
  net.world.link(0).reorder = 0.2;
  net.enable();
  net.open();
  std::multiset<std::string> sent;
  for (int i = 0; i < 500; ++i) {
    sent.insert(std::to_string(i));
    EXPECT_EQ(net.push(std::to_string(i)), Errc::ok);
  }
  net.world.run_for(60s);
  EXPECT_EQ(std::multiset<std::string>(net.sinks[1]->received.begin(), net.sinks[1]->received.end()), sent);
  EXPECT_TRUE(net.failures.empty());
}

TEST(ReliableDatagramTest, the_sender_is_told_of_what_was_not_delivered) {
  DatagramHosts net;
  net.open();
  EXPECT_EQ(net.push("nobody is there"), Errc::ok);
  net.world.run_for(30s);
  // No protocol is enabled there, so nothing answers.
  EXPECT_EQ(net.failures, std::vector<Errc>{Errc::host_unreachable});
  EXPECT_EQ(DatagramHosts::statistics(*net.datagrams[0]).failed, 1U);
  {
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(net.datagrams[1]->open_enable(*net.sinks[1], SimHosts::anyone(241)));
  }
  net.failures.clear();
  EXPECT_EQ(net.push("wrong number"), Errc::ok);
  net.world.run_for(1s);
  EXPECT_EQ(net.failures, std::vector<Errc>{Errc::bad_procedure});
}

TEST(ReliableDatagramTest, a_host_that_has_as_many_sessions_as_it_may_is_not_said_to_serve_nobody) {
  DatagramHosts net({.sessions = 1, .failed = {}});
  net.enable();
  {
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(net.datagrams[1]->open_enable(*net.sinks[1], SimHosts::anyone(241)));
  }
  net.open();
  EXPECT_EQ(net.push("taken"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_TRUE(net.failures.empty());
  {
    const Shepherd inside(net[0].monitor());
    net.session = *net.datagrams[0]->open(*net.sinks[0], net.to(1, 241));
  }
  EXPECT_EQ(net.push("no room"), Errc::ok);
  net.world.run_for(1ms);
  EXPECT_EQ(net.failures, std::vector<Errc>{Errc::limit_reached});
}

TEST(ReliableDatagramTest, a_full_queue_and_a_message_that_is_too_long_are_refused) {
  DatagramHosts net({.channels = 2, .queue = 3, .failed = {}});
  net.enable();
  net.open();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(net.push("x"), Errc::ok);
  EXPECT_EQ(net.push("x"), Errc::limit_reached);
  net.world.run_for(10ms);
  EXPECT_EQ(net.sinks[1]->received.size(), 5U);
  const std::size_t size = test::asked<control::MaximumMessage>(*net.session).size;
  EXPECT_EQ(net.push(std::string(size, 'x')), Errc::ok);
  EXPECT_EQ(net.push(std::string(size + 1, 'x')), Errc::message_too_long);
  net.world.run_for(10ms);
  EXPECT_EQ(net.sinks[1]->received.size(), 6U);
}

TEST(ReliableDatagramTest, a_receiver_may_refuse_and_nothing_is_left_in_the_end) {
  DatagramHosts net;
  net.enable();
  net.sinks[1]->accept = Errc::not_permitted;
  net.open();
  EXPECT_EQ(net.push("x"), Errc::ok);
  net.world.run_for(1s);
  EXPECT_EQ(net.failures.size(), 1U);
  net.sinks[1]->accept = Errc::ok;
  EXPECT_EQ(net.push("x"), Errc::ok);
  net.world.run_for(1s);
  net.session = {};
  net.sinks[1]->sessions.clear();
  net.world.run_for(5min);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(DatagramHosts::statistics(*net.datagrams[i]).sessions, 0U);
    EXPECT_EQ(DatagramHosts::statistics(*net.datagrams[i]).state, 0U);
    EXPECT_EQ(DatagramHosts::statistics(*net.channels[i]).sessions, 0U);
    EXPECT_EQ(DatagramHosts::statistics(*net.channels[i]).state, 0U);
    EXPECT_EQ(net[i].pool().in_use(), 0U);
  }
}

TEST(ReliableDatagramTest, a_session_belongs_to_one_protocol) {
  DatagramHosts net;
  net.open();
  const Shepherd inside(net[0].monitor());
  SinkProtocol other(net[0].host());
  EXPECT_EQ(net.datagrams[0]->open(other, net.to(1)).code(), Errc::name_taken);
  EXPECT_EQ(&**net.datagrams[0]->open(*net.sinks[0], net.to(1)), net.session.get());
}

/// The server's end of a channel.
class Asking final : public Session {
 public:
  using Session::Session;
  void reply(Message message) noexcept override { answer = text_of(message); }
  std::string answer;
};

/// Another thread may take the last buffer at any time; here one reference keeps it from the pool.
TEST(ReliableDatagramTest, a_refusal_needs_no_buffer_for_without_one_it_would_say_that_the_message_was_taken) {
  DatagramHosts net;
  net.enable();
  const Shepherd inside(net[1].monitor());
  auto* const lower = new Asking(*net.channels[1], *net.datagrams[1], net.to(0));
  const SessionRef keep(lower);
  Message to_nobody = net.message(1, std::string("\0\0\0\xf1", 4));  // with no byte of data
  const Message kept = to_nobody.share();
  std::vector<Message> all;
  for (const std::size_t size : {20'000U, 2'000U, 100U})
    for (Message one = Message::make(net[1].pool(), size); one.allocated(); one = Message::make(net[1].pool(), size))
      all.push_back(std::move(one));
  net.datagrams[1]->call_demux(*lower, std::move(to_nobody));
  EXPECT_EQ(lower->answer.size(), 1U);
}

TEST(ReliableDatagramTest, hosts_whose_addresses_are_not_known_do_not_share_a_session) {
  DatagramHosts net;
  net.enable();
  const Shepherd inside(net[1].monitor());
  auto* const lower = new Asking(*net.channels[1], *net.datagrams[1], {});
  const SessionRef keep(lower);
  net.datagrams[1]->call_demux(*lower, net.message(1, std::string("\0\0\0\xf0hello", 9)));
  EXPECT_EQ(lower->answer.size(), 1U);
  EXPECT_TRUE(net.sinks[1]->sessions.empty());
  EXPECT_EQ(DatagramHosts::statistics(*net.datagrams[1]).refused, 1U);
}

TEST(ReliableDatagramTest, its_kind_refuses_a_queue_that_takes_no_message) {
  PacketWire wire(1);
  InstanceParts parts{wire[0].host, "datagram", {&wire[0].end}, {}};
  EXPECT_TRUE(reliable_datagram_kind().make(parts));
  parts.options.set("queue", "0");
  EXPECT_EQ(reliable_datagram_kind().make(parts).code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace lrpc::netrpc
