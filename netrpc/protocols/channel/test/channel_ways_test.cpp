// CHANNEL when the layer below has no path to the peer, or another path than before.
#include "netrpc/protocols/channel/test/channel_pair.h"
#include "netrpc/protocols/vip/test/vip_host.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

TEST(ChannelWaysTest, a_host_that_is_found_not_to_be_there_ends_the_first_call_to_it_without_further_waiting) {
  ChannelPair pair;
  TestCall call;
  pair.call(call, "anybody?");
  pair.wire.packets.clear();
  pair.wire[0].end.refuses = Errc::host_unreachable;  // ETH reports this once the kernel has answered
  pair.wire.pass(100ms);
  EXPECT_EQ(call.outcome, Errc::host_unreachable);
  EXPECT_EQ(call.completions, 1);
  pair.wire[0].end.refuses = Errc::ok;
  pair.expect_ok("it is there now");
}

TEST(ChannelWaysTest, a_layer_below_that_takes_another_way_after_the_first_packet_is_given_the_next_one) {
  ChannelPair pair;
  TestCall call;
  pair.wire[0].end.refuses = Errc::host_unreachable;  // as VIP reports when its Ethernet fails
  pair.call(call, "hello");
  pair.wire[0].end.refuses = Errc::ok;
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::ok);
}

/// CHANNEL directly on VIP.
struct ChannelHost : VipHost {
  explicit ChannelHost(SimHost& on) : VipHost(on), channel(make_channel(on.host(), "channel", *vip)), high(on.host()) {
    ethernet.resolves = false;
  }
  std::unique_ptr<Protocol> channel;
  SlowServer high;
};

TEST(ChannelWaysTest, a_client_that_comes_from_an_address_that_nobody_knew_is_served_once_it_is_known) {
  SimHosts net(2);
  {
    ChannelHost client(net[0]);
    ChannelHost server(net[1]);
    {
      const Shepherd inside(net[1].monitor());
      ASSERT_TRUE(server.channel->open_enable(server.high, SimHosts::anyone()));
    }
    SessionRef session;
    const auto make = [&](TestCall& call, std::string_view text) {
      {
        const Shepherd inside(net[0].monitor());
        if (!session) session = *client.channel->open(client.high, net.to(1));
        session->call(net.message(0, text), call, kNoLimit);
      }
      net.world.run_for(1ms);
    };
    TestCall over_ip;
    make(over_ip, "over IP");
    EXPECT_EQ(over_ip.outcome, Errc::ok);
    EXPECT_EQ(over_ip.completions, 1);
    // As when the kernel's notifications about neighbours were lost at the server, which has asked the kernel for all
    // neighbours again: before the answer it does not know which host has the client's Ethernet address.
    server.ethernet.hide_hosts = true;
    client.ethernet.resolves = true;
    {
      const Shepherd inside(net[0].monitor());
      net[0].host().peers().path_changed(net.address(1));
    }
    TestCall over_ethernet;
    make(over_ethernet, "over the Ethernet");
    EXPECT_GT(server.ethernet.popped, 0);
    EXPECT_FALSE(over_ethernet.done()) << "it may be who has called already";
    server.ethernet.hide_hosts = false;
    net.world.run_for(1s);
    EXPECT_EQ(over_ethernet.outcome, Errc::ok);
    EXPECT_EQ(over_ethernet.completions, 1);
    EXPECT_EQ(server.high.executed, (std::vector<std::string>{"over IP", "over the Ethernet"}));
    const Shepherd inside(net[0].monitor());
    session = {};
  }
}

/// One Ethernet session serves all addresses of a machine.
TEST(ChannelWaysTest, a_machine_that_was_called_by_two_addresses_is_forgotten_under_both) {
  SimHosts net(2);
  Gauge& ethernet = net[0].add<Gauge>(net[0].ethernet());
  ethernet.alias = {0x0a000009};
  ethernet.machine_of_alias = net[1].ethernet_address();
  {
    const std::unique_ptr<Protocol> channel = make_channel(net[0].host(), "channel", ethernet);
    SlowServer high(net[0].host());
    const auto open = [&](HostAddress host) {
      const Shepherd inside(net[0].monitor());
      ParticipantSet participants = net.to(1);
      participants.remote.host = host;
      auto opened = channel->open(high, participants);
      EXPECT_TRUE(opened) << opened.error().message();
    };
    const auto peers = [&] { return test::asked<control::Statistics>(*channel).state; };
    for (int times = 0; times < 2; ++times) {
      open(net.address(1));
      open(ethernet.alias);
      EXPECT_EQ(peers(), 1U);
      const Shepherd inside(net[0].monitor());
      control::Request drop = control::DropIdle{};
      EXPECT_EQ(channel->control(drop), Errc::ok);
      EXPECT_EQ(peers(), 0U);
    }
    open(ethernet.alias);
    EXPECT_EQ(peers(), 1U);
  }
}

/// A machine whose host address is unknown may be called by its device address: many machines share the unknown one.
TEST(ChannelWaysTest, a_machine_that_was_called_by_its_device_address_is_forgotten_when_its_host_is_known) {
  SimHosts net(3);
  Gauge& ethernet = net[0].add<Gauge>(net[0].ethernet());
  {
    const std::unique_ptr<Protocol> channel = make_channel(net[0].host(), "channel", ethernet);
    SlowServer high(net[0].host());
    for (const std::size_t to : {1U, 2U}) {
      const Shepherd inside(net[0].monitor());
      ParticipantSet participants = SimHosts::anyone();
      participants.remote.ethernet = net[to].ethernet_address();
      auto opened = channel->open(high, participants);
      EXPECT_TRUE(opened) << opened.error().message();
      opened = SessionRef();
      control::Request drop = control::DropIdle{};
      EXPECT_EQ(channel->control(drop), Errc::ok);
      EXPECT_EQ(test::asked<control::Statistics>(*channel).state, 0U);
    }
  }
}

}  // namespace
}  // namespace lrpc::netrpc
