// CHANNEL where the layer below finds no way to the peer, or another one than before.
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
  pair.wire[0].end.refuses = Errc::host_unreachable;  // ETH says so when the kernel has answered
  pair.wire.pass(100ms);
  EXPECT_EQ(call.outcome, Errc::host_unreachable);
  EXPECT_EQ(call.completions, 1);
  pair.wire[0].end.refuses = Errc::ok;
  pair.expect_ok("it is there now");
}

TEST(ChannelWaysTest, a_layer_below_that_takes_another_way_after_the_first_packet_is_given_the_next_one) {
  ChannelPair pair;
  TestCall call;
  pair.wire[0].end.refuses = Errc::host_unreachable;  // as VIP, when its Ethernet fails
  pair.call(call, "hello");
  pair.wire[0].end.refuses = Errc::ok;
  pair.wire.pass(100ms);
  pair.wire.deliver_all();
  EXPECT_EQ(call.outcome, Errc::ok);
}

/// CHANNEL straight on VIP.
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
    // The server's kernel has lost news of its neighbours, and is asked for all of them.
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

}  // namespace
}  // namespace lrpc::netrpc
