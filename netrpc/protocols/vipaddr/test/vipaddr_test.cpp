// VIPaddr: which lower session it returns, and that it adds nothing to the path afterwards.
#include "netrpc/protocols/vipaddr/vipaddr.h"

#include <gtest/gtest.h>

#include "netrpc/protocols/channel/channel.h"
#include "netrpc/protocols/vip/test/vip_host.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

struct VipAddrHost {
  explicit VipAddrHost(SimHost& on) : machine(on) {
    std::shared_ptr<Protocol> made = make_vipaddr(on.host(), "vipaddr", on.ethernet(), on.ip());
    vipaddr = made.get();
    machine.own(std::move(made));
    sink = &machine.add<SinkProtocol>();
  }
  SimHost& machine;
  Protocol* vipaddr = nullptr;
  SinkProtocol* sink = nullptr;
};

TEST(VipAddr, a_local_host_is_opened_on_the_ethernet_for_whoever_opens) {
  SimHosts net(2);
  VipAddrHost a(net[0]);
  const Shepherd inside(net[0].monitor());
  auto session = a.vipaddr->open(*a.sink, net.to(1));
  ASSERT_TRUE(session);
  EXPECT_EQ(&(*session)->protocol(), &net[0].ethernet());
  EXPECT_EQ(&(*session)->high(), a.sink);
}

TEST(VipAddr, a_distant_host_is_opened_on_ip) {
  SimHosts net(2, 2);
  VipAddrHost a(net[0]);
  const Shepherd inside(net[0].monitor());
  auto session = a.vipaddr->open(*a.sink, net.to(1));
  ASSERT_TRUE(session);
  EXPECT_EQ(&(*session)->protocol(), &net[0].ip());
}

TEST(VipAddr, who_may_push_more_than_the_ethernet_carries_gets_ip) {
  SimHosts net(2);
  VipAddrHost a(net[0]);
  a.sink->advertised = 1501;
  const Shepherd inside(net[0].monitor());
  auto session = a.vipaddr->open(*a.sink, net.to(1));
  ASSERT_TRUE(session);
  EXPECT_EQ(&(*session)->protocol(), &net[0].ip());
}

TEST(VipAddr, enabling_it_enables_both_for_the_protocol_above_and_messages_come_straight_to_it) {
  SimHosts net(3);
  VipAddrHost a(net[0]), b(net[1]), c(net[2]);
  {
    const Shepherd inside(net[1].monitor());
    ASSERT_TRUE(b.vipaddr->open_enable(*b.sink, SimHosts::anyone()));
  }
  c.sink->advertised = 60000;
  for (VipAddrHost* from : {&a, &c}) {
    const Shepherd inside(from->machine.monitor());
    auto session = from->vipaddr->open(*from->sink, net.to(1));
    ASSERT_TRUE(session);
    EXPECT_EQ((*session)->push(net.message(from->machine.index(), "hello, straight from below, without any padding")),
              Errc::ok);
  }
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->sessions.size(), 2U);
  EXPECT_EQ(&b.sink->sessions[0]->protocol(), &net[1].ethernet());
  EXPECT_EQ(&b.sink->sessions[1]->protocol(), &net[1].ip());
  EXPECT_EQ(b.sink->received.size(), 2U);
  {
    const Shepherd inside(net[1].monitor());
    b.vipaddr->open_disable(*b.sink, SimHosts::anyone());
    EXPECT_TRUE(b.vipaddr->open_enable(*b.sink, SimHosts::anyone()));
    EXPECT_EQ(b.vipaddr->open_enable(*b.sink, SimHosts::anyone(256)).code(), Errc::invalid_argument);
  }
}

TEST(VipAddr, opens_that_lead_nowhere_fail) {
  SimHosts net(1);
  VipAddrHost a(net[0]);
  const Shepherd inside(net[0].monitor());
  ParticipantSet nobody = SimHosts::anyone();
  EXPECT_EQ(a.vipaddr->open(*a.sink, nobody).code(), Errc::invalid_argument);
  nobody.remote.host = *parse_host("192.0.2.1");
  EXPECT_EQ(a.vipaddr->open(*a.sink, nobody).code(), Errc::host_unreachable);
}

TEST(VipAddr, its_optimum_is_what_goes_uncut_either_way) {
  SimHosts net(1);
  VipAddrHost a(net[0]);
  EXPECT_EQ(test::asked<control::OptimumMessage>(*a.vipaddr).size, 1480U);
}

/// CHANNEL on VIPaddr, over an Ethernet that resolves no address at first.
struct CallingHost {
  explicit CallingHost(SimHost& on)
      : machine(on),
        ethernet(on.add<Gauge>(on.ethernet())),
        vipaddr(make_vipaddr(on.host(), "vipaddr", ethernet, on.ip())),
        channel(make_channel(on.host(), "channel", *vipaddr, {.max_message = 1000})),
        sink(on.add<SinkProtocol>()) {
    ethernet.resolves = false;
    const Shepherd inside(machine.monitor());
    EXPECT_TRUE(channel->open_enable(sink, SimHosts::anyone()));
  }
  ~CallingHost() {
    const Shepherd inside(machine.monitor());
    channel.reset();
  }
  SessionRef open(const ParticipantSet& to) {
    const Shepherd inside(machine.monitor());
    auto opened = channel->open(sink, to);
    EXPECT_TRUE(opened);
    return *opened;
  }
  void close(SessionRef& session) {
    const Shepherd inside(machine.monitor());
    session = {};
  }
  SimHost& machine;
  Gauge& ethernet;
  std::unique_ptr<Protocol> vipaddr;
  std::unique_ptr<Protocol> channel;
  SinkProtocol& sink;
};

TEST(VipAddr, every_channel_over_it_is_served_also_those_that_are_opened_when_arp_has_answered) {
  SimHosts net(2);
  CallingHost a(net[0]), b(net[1]);
  const auto expect_call = [&](const SessionRef& channel, const char* when) {
    TestCall call;
    {
      const Shepherd inside(net[0].monitor());
      channel->call(net.message(0, "call"), call, kNoLimit);
    }
    net.world.run_for(6s);
    EXPECT_TRUE(call.done()) << when;
    EXPECT_EQ(call.outcome, Errc::ok) << when;
  };
  SessionRef first = a.open(net.to(1));
  expect_call(first, "over IP");
  a.ethernet.resolves = true;
  SessionRef second = a.open(net.to(1));
  expect_call(second, "beside a channel over IP");
  a.close(first);
  a.close(second);
  net.world.run_for(20s);
  first = a.open(net.to(1));
  expect_call(first, "after a channel over IP");
  a.close(first);
  net.world.run_for(300s);
  EXPECT_EQ(a.ethernet.pushed, 0);
  first = a.open(net.to(1));
  expect_call(first, "when that is forgotten");
  EXPECT_GT(a.ethernet.pushed, 0);
  a.close(first);
}

}  // namespace
}  // namespace lrpc::netrpc
