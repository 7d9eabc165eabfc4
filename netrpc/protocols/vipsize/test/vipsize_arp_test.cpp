// VIPsize over an Ethernet whose ARP knows the peer at one end only, or has not answered yet.
#include <gtest/gtest.h>

#include <utility>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/vipaddr/vipaddr.h"
#include "netrpc/protocols/vipsize/vipsize.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// An Ethernet whose ARP answers when the test decides.
class SlowArp final : public Protocol {
 public:
  SlowArp(Host& host, Protocol& ethernet) : Protocol(host, "eth"), ethernet_(ethernet) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (!knows && !participants.remote.ethernet.known()) return Errc::host_unreachable;
    return ethernet_.open(high, participants);
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    return ethernet_.open_enable(high, participants);
  }
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override {
    ethernet_.open_disable(high, participants);
  }
  Errc control(control::Request& request) noexcept override {
    if (std::holds_alternative<control::Resolve>(request)) {
      ++asked;
      if (!knows) return Errc::host_unreachable;
    }
    return ethernet_.control(request);
  }
  bool knows = false;
  int asked = 0;

 private:
  Protocol& ethernet_;
};

struct ArpHost {
  explicit ArpHost(SimHost& on) : machine(on), arp(on.add<SlowArp>(on.ethernet())) {
    Protocol& vipaddr = own(make_vipaddr(on.host(), "vipaddr", arp, on.ip()));
    Protocol& fragment = own(std::move(*make_fragment(on.host(), "fragment", vipaddr)));
    vipsize = &own(std::move(*make_vipsize(on.host(), "vipsize", vipaddr, fragment)));
    sink = &machine.add<SinkProtocol>();
    const Shepherd inside(machine.monitor());
    EXPECT_TRUE(vipsize->open_enable(*sink, SimHosts::anyone()));
  }
  Protocol& own(std::unique_ptr<Protocol> made) {
    std::shared_ptr<Protocol> shared = std::move(made);
    machine.own(shared);
    return *shared;
  }
  /// Packets sent by a device.
  static std::uint64_t sent(Protocol& device) { return test::asked<control::Statistics>(device).sent; }
  [[nodiscard]] std::uint64_t over_ethernet() const { return sent(machine.ethernet()); }
  [[nodiscard]] std::uint64_t over_ip() const { return sent(machine.ip()); }
  SimHost& machine;
  SlowArp& arp;
  Protocol* vipsize = nullptr;
  SinkProtocol* sink = nullptr;
};

/// Parameter: the size of a message, which either bypasses FRAGMENT or passes through it.
class VipSizeAndArp : public ::testing::TestWithParam<std::size_t> {
 protected:
  /// The client sends over IP. Returns the server's session for that.
  SessionRef call() {
    {
      const Shepherd inside(client.machine.monitor());
      auto opened = client.vipsize->open(*client.sink, net.to(1));
      EXPECT_TRUE(opened) << opened.error().message();
      EXPECT_EQ((*opened)->push(net.message(0, std::string(GetParam(), 'x'))), Errc::ok);
    }
    net.world.run_for(1ms);
    EXPECT_EQ(client.over_ethernet(), 0U);
    EXPECT_EQ(server.sink->sessions.size(), 1U);
    return server.sink->sessions.at(0);
  }
  void answer(const SessionRef& session) {
    const Shepherd inside(server.machine.monitor());
    EXPECT_EQ(session->push(net.message(1, std::string(GetParam(), 'y'))), Errc::ok);
  }

  SimHosts net{2};
  ArpHost client{net[0]};
  ArpHost server{net[1]};
};

INSTANTIATE_TEST_SUITE_P(SmallAndLarge, VipSizeAndArp, ::testing::Values(100U, 4000U),
                         [](const auto& shown) { return shown.param == 100 ? "small" : "large"; });

TEST_P(VipSizeAndArp, a_peer_that_came_over_ip_is_answered_over_the_ethernet_where_arp_knows_it) {
  server.arp.knows = true;
  answer(call());
  net.world.run_for(1ms);
  EXPECT_EQ(client.sink->received.size(), 1U);
  EXPECT_GT(server.over_ethernet(), 0U);
  EXPECT_EQ(server.over_ip(), 0U);
}

TEST_P(VipSizeAndArp, arp_is_asked_for_a_peer_that_came_over_ip_and_its_answer_is_followed) {
  const SessionRef session = call();
  EXPECT_EQ(server.arp.asked, 0);
  answer(session);
  EXPECT_GT(server.arp.asked, 0);
  EXPECT_EQ(server.over_ethernet(), 0U);
  const std::uint64_t before = server.over_ip();
  server.arp.knows = true;
  {
    const Shepherd inside(server.machine.monitor());
    server.machine.host().peers().path_changed(net.address(0));
  }
  answer(session);
  net.world.run_for(1ms);
  EXPECT_EQ(client.sink->received.size(), 2U);
  EXPECT_GT(server.over_ethernet(), 0U);
  EXPECT_EQ(server.over_ip(), before);
}

/// A server that hears its client before its ARP knows the client, and serves it by CHANNEL.
struct HeardBeforeArp {
  explicit HeardBeforeArp(const ChannelOptions& of_server = {})
      : calls(client.own(make_channel(net[0].host(), "channel", *client.vipsize))),
        serves(server.own(make_channel(net[1].host(), "channel", *server.vipsize, of_server))) {
    client.arp.knows = true;
    ethernet.set_reverse(false);
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(serves.open_enable(*server.sink, SimHosts::anyone()));
  }
  /// From now on the server's ARP answers.
  void arp_answers() {
    server.arp.knows = true;
    ethernet.set_reverse(true);
  }

  SimHosts net{2};
  ArpHost client{net[0]};
  ArpHost server{net[1]};
  SimEthernet& ethernet = static_cast<SimEthernet&>(net[1].ethernet());
  Protocol& calls;
  Protocol& serves;
};

/// Makes a short call and, once ARP knows the client, a long one that is echoed. Returns the outcome of the long call.
Errc outcome_of_long_call(const ChannelOptions& of_server) {
  HeardBeforeArp hosts(of_server);
  SimHosts& net = hosts.net;
  SessionRef back;  // by IP
  {
    const Shepherd inside(net[1].monitor());
    back = *hosts.serves.open(*hosts.server.sink, net.to(0));
  }
  SessionRef session;
  {
    const Shepherd inside(net[0].monitor());
    session = *hosts.calls.open(*hosts.client.sink, net.to(1));
  }
  Errc outcome = Errc::ok;
  for (const std::size_t size : {10U, 4000U}) {
    EXPECT_EQ(outcome, Errc::ok);
    TestCall call;
    {
      const Shepherd inside(net[0].monitor());
      session->call(net.message(0, std::string(size, 'x')), call, kNoLimit);
    }
    net.world.run_for(1s);
    outcome = call.outcome;
    EXPECT_EQ(call.reply.size(), outcome == Errc::ok ? size : 0);
    hosts.arp_answers();
  }
  {
    const Shepherd inside(net[0].monitor());
    session = {};
  }
  const Shepherd inside(net[1].monitor());
  back = {};
  return outcome;
}

TEST(ChannelOnVipSize, long_replies_reach_a_host_that_was_first_heard_before_arp_knew_it) {
  EXPECT_EQ(outcome_of_long_call({}), Errc::ok);
}

TEST(ChannelOnVipSize, a_session_tells_of_its_host_and_of_long_replies_once_arp_knows_it) {
  HeardBeforeArp hosts;
  SimHosts& net = hosts.net;
  ArpHost& server = hosts.server;
  const auto call = [&](std::size_t size) {
    TestCall made;
    SessionRef session;
    {
      const Shepherd inside(net[0].monitor());
      session = *hosts.calls.open(*hosts.client.sink, net.to(1));
      session->call(net.message(0, std::string(size, 'x')), made, kNoLimit);
    }
    net.world.run_for(1s);
    const Shepherd inside(net[0].monitor());
    session = {};
    return made.outcome == Errc::ok ? made.reply.size() : 0;
  };
  EXPECT_EQ(call(10), 10U);
  ASSERT_EQ(server.sink->sessions.size(), 1U);
  const auto maximum_and_host = [&] {
    const Shepherd inside(net[1].monitor());
    const auto maximum = test::asked<control::MaximumMessage>(*server.sink->sessions[0]);
    const auto peer = test::asked<control::PeerHost>(*server.sink->sessions[0]);
    return std::pair(maximum.size, peer.host);
  };
  const auto before = maximum_and_host();
  EXPECT_LT(before.first, SimEthernet::kMaximum);
  EXPECT_FALSE(before.second.known());
  hosts.arp_answers();
  const auto now = maximum_and_host();
  EXPECT_GT(now.first, 16'000U);
  EXPECT_EQ(now.second, net.address(0));
  EXPECT_EQ(call(4000), 4000U);
}

TEST(ChannelOnVipSize, replies_to_it_are_no_longer_than_the_options_allow) {
  EXPECT_EQ(outcome_of_long_call({.max_message = 1000}), Errc::call_lost);
}

}  // namespace
}  // namespace lrpc::netrpc
