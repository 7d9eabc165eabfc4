// The table of VIP hosts: which hosts are advertised, believed and forgotten, in virtual time.
#include "netrpc/protocols/viphosts/viphosts.h"

#include <gtest/gtest.h>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/vip/vip.h"
#include "netrpc/protocols/vipaddr/vipaddr.h"
#include "netrpc/protocols/viphosts/header.h"
#include "netrpc/protocols/vipsize/vipsize.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using viphosts::Advertisement;

struct TableHost {
  explicit TableHost(SimHost& on, const VipHostsOptions& options = {}) : machine(on) {
    std::shared_ptr<Protocol> made = std::move(*make_viphosts(on.host(), "viphosts", on.ethernet(), options));
    table = made.get();
    machine.own(std::move(made));
  }
  void advertise(ProtocolNumber number, bool speaks = true) {
    const Shepherd inside(machine.monitor());
    (void)test::asked(*table, control::AdvertiseVip{number, speaks});
  }
  bool believes(HostAddress host, ProtocolNumber number) {
    return test::asked(*table, control::SpeaksVip{host, number, false}).speaks;
  }
  control::Statistics statistics() { return test::asked<control::Statistics>(*table); }
  SimHost& machine;
  Protocol* table = nullptr;
};

/// Broadcasts a forged advertisement from `liar`.
void inject(SimHosts& net, Protocol& liar, const Advertisement& said) {
  SimHost& machine = *net.world.find(liar.host());
  const Shepherd inside(machine.monitor());
  ParticipantSet everybody{protocol_numbers::kVipHosts, {}, {}};
  everybody.remote.ethernet = kEthernetBroadcast;
  auto session = machine.ethernet().open(liar, everybody);
  ASSERT_TRUE(session);
  Message message = Message::make(machine.pool(), Advertisement::kSize);
  said.encode(message.bytes().data());
  ASSERT_EQ((*session)->push(std::move(message)), Errc::ok);
}

Advertisement advertisement(HostAddress host, std::uint32_t lifetime_ms = 60000) {
  Advertisement said;
  said.host = host;
  said.boot_id = 7;
  said.lifetime_ms = lifetime_ms;
  said.set(240, true);
  return said;
}

TEST(VipHosts, an_advertisement_is_the_shortest_ethernet_frame) {
  Advertisement said = advertisement({0x0a000001}, 0x01020304);
  said.set(255, true);
  said.set(1, true);
  std::array<std::byte, Advertisement::kSize> bytes{};
  said.encode(bytes.data());
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[2], std::byte{10});
  EXPECT_EQ(bytes[13], std::byte{4});
  EXPECT_EQ(bytes[14], std::byte{2});
  EXPECT_EQ(bytes[14 + 30], std::byte{1});
  EXPECT_EQ(bytes[14 + 31], std::byte{0x80});
  const Advertisement back = Advertisement::decode(bytes.data());
  EXPECT_EQ(back.host, said.host);
  EXPECT_EQ(back.protocols, said.protocols);
  EXPECT_FALSE(back.speaks(256));
}

TEST(VipHosts, hosts_learn_of_each_other_as_they_start_and_of_changes) {
  SimHosts net(3);
  TableHost a(net[0]), b(net[1]);
  a.advertise(240);
  b.advertise(241);
  net.world.run_for(10ms);
  EXPECT_TRUE(a.believes(net.address(1), 241));
  EXPECT_FALSE(a.believes(net.address(1), 240));
  EXPECT_TRUE(b.believes(net.address(0), 240));
  TableHost late(net[2]);
  net.world.run_for(10ms);
  EXPECT_TRUE(late.believes(net.address(0), 240)) << "answered at once";
  EXPECT_TRUE(late.believes(net.address(1), 241));
  a.advertise(242);
  a.advertise(240, false);
  net.world.run_for(10ms);
  EXPECT_TRUE(late.believes(net.address(0), 242));
  EXPECT_FALSE(late.believes(net.address(0), 240));
}

TEST(VipHosts, who_is_not_heard_any_more_is_forgotten_and_who_says_good_bye_at_once) {
  SimHosts net(3);
  TableHost a(net[0], {.lifetime = 3s});
  TableHost b(net[1], {.lifetime = 3s});
  TableHost c(net[2], {.lifetime = 3s});
  b.advertise(240);
  net.world.run_for(60s);
  EXPECT_TRUE(a.believes(net.address(1), 240)) << "said again and again";
  net.world.set_group(net[1], 1);
  net.world.run_for(4s);
  EXPECT_FALSE(a.believes(net.address(1), 240));
  EXPECT_EQ(a.statistics().state, 1U);
  inject(net, *c.table, advertisement(net.address(2), 0));
  net.world.run_for(1ms);
  EXPECT_EQ(a.statistics().state, 0U);
  net.world.run_for(3s);
  EXPECT_EQ(a.statistics().state, 1U);
  net[2].crash();
  net.world.run_for(5s);
  EXPECT_EQ(a.statistics().state, 0U);
}

TEST(VipHosts, the_ethernet_address_tells_the_host) {
  SimHosts net(2);
  TableHost a(net[0]), b(net[1]);
  net.world.run_for(10ms);
  auto reverse = test::asked(*a.table, control::ResolveReverse{net[1].ethernet_address(), {}});
  EXPECT_EQ(reverse.host, net.address(1));
  reverse.ethernet.bytes[3] ^= 1;
  EXPECT_EQ(control::ask(*a.table, reverse), Errc::host_unreachable);
}

TEST(VipHosts, tells_vipaddr_which_host_has_an_ethernet_address_that_arp_does_not_know) {
  SimHosts net(2);
  TableHost a(net[0]), b(net[1]);
  static_cast<SimEthernet&>(net[0].ethernet()).set_reverse(false);
  const auto vipaddr = make_vipaddr(net[0].host(), "vipaddr", net[0].ethernet(), net[0].ip(), a.table);
  control::ResolveReverse reverse{net[1].ethernet_address(), {}};
  EXPECT_EQ(control::ask(*vipaddr, reverse), Errc::host_unreachable) << "it has not been heard yet";
  net.world.run_for(10ms);
  EXPECT_EQ(test::asked(*vipaddr, reverse).host, net.address(1));
}

TEST(VipHosts, advertisements_of_another_version_or_of_nobody_are_dropped) {
  SimHosts net(2);
  SinkProtocol& liar = net[1].add<SinkProtocol>("liar");
  TableHost a(net[0]);
  Advertisement said = advertisement(net.address(1));
  said.version = 2;
  inject(net, liar, said);
  said = advertisement({});
  inject(net, liar, said);
  net.world.run_for(1ms);
  EXPECT_EQ(a.statistics().malformed, 2U);
  EXPECT_EQ(a.statistics().state, 0U);
}

TEST(VipHosts, nobody_takes_the_place_of_a_host_that_is_known) {
  SimHosts net(3);
  SinkProtocol& liar = net[2].add<SinkProtocol>("liar");
  TableHost a(net[0]), b(net[1]);
  b.advertise(240);
  net.world.run_for(10ms);
  Advertisement lie = advertisement(net.address(1));
  lie.set(250, true);
  inject(net, liar, lie);
  lie.lifetime_ms = 0;
  inject(net, liar, lie);
  net.world.run_for(1ms);
  EXPECT_EQ(a.statistics().refused, 2U);
  EXPECT_TRUE(a.believes(net.address(1), 240));
  EXPECT_FALSE(a.believes(net.address(1), 250));
}

TEST(VipHosts, it_makes_nobody_believe_that_a_host_has_rebooted) {
  SimHosts net(2);
  TableHost a(net[0]), b(net[1]);
  net[0].host().peers().heard(net.address(1), 99);
  int told = 0;
  net[0].host().peers().watch([&](HostAddress, BootId, BootId) { ++told; });
  net.world.run_for(10ms);
  inject(net, *b.table, advertisement(net.address(1)));
  net.world.run_for(1ms);
  EXPECT_EQ(told, 0);
  EXPECT_EQ(net[0].host().peers().boot_id(net.address(1)), 99U);
}

TEST(VipHosts, the_table_is_bounded_and_lives_of_others_are_believed_for_an_hour_at_most) {
  SimHosts net(2);
  SinkProtocol& liar = net[1].add<SinkProtocol>("liar");
  TableHost a(net[0], {.hosts = 100});
  for (std::uint32_t i = 0; i < 1000; ++i) {
    Advertisement said = advertisement({0xac100000 + i}, 0xffffffff);
    said.flags = viphosts::kAnswerMe;
    inject(net, liar, said);
  }
  net.world.run_for(100ms);
  EXPECT_EQ(a.statistics().state, 100U);
  EXPECT_EQ(a.statistics().refused, 900U);
  EXPECT_LE(a.statistics().sent, 110U) << "one answer for each entry";
  net.world.run_for(2h);
  EXPECT_EQ(a.statistics().state, 0U);
}

TEST(VipHosts, who_moves_does_not_take_along_the_address_that_another_host_has_by_now) {
  SimHosts net(3);
  SinkProtocol& liar = net[2].add<SinkProtocol>("liar");
  TableHost a(net[0]);
  // Both come from one Ethernet address, which now belongs to the second host. ARP then tells where the first host is.
  inject(net, liar, advertisement(net.address(1)));
  inject(net, liar, advertisement(net.address(2)));
  net.world.run_for(1ms);
  TableHost b(net[1]);
  net.world.run_for(10ms);
  for (const std::size_t i : {1U, 2U})
    EXPECT_EQ(test::asked(*a.table, control::ResolveReverse{net[i].ethernet_address(), {}}).host, net.address(i));
}

TEST(VipHosts, a_full_table_is_searched_for_room_once_a_second) {
  SimHosts net(2);
  SinkProtocol& liar = net[1].add<SinkProtocol>("liar");
  TableHost a(net[0], {.hosts = 10});
  const auto say = [&](std::uint32_t host, std::uint32_t lifetime_ms) {
    inject(net, liar, advertisement({0xac100000 + host}, lifetime_ms));
    net.world.run_for(1ms);
  };
  for (std::uint32_t i = 0; i < 10; ++i) say(i, 100);
  say(10, 60000);  // finds no room
  EXPECT_EQ(a.statistics().refused, 1U);
  net.world.run_for(500ms);  // by now the first ten entries have expired
  say(11, 60000);
  EXPECT_EQ(a.statistics().refused, 2U) << "not so soon";
  net.world.run_for(600ms);
  say(12, 60000);
  EXPECT_TRUE(a.believes({0xac10000c}, 240));
  EXPECT_EQ(a.statistics().refused, 2U);
}

TEST(VipHosts, vip_uses_ip_until_the_peer_has_been_heard_and_the_ethernet_from_the_next_open_on) {
  SimHosts net(2);
  TableHost a(net[0]);
  std::shared_ptr<Protocol> made = std::move(*make_vip(net[0].host(), "vip", net[0].ethernet(), net[0].ip(), a.table));
  Protocol& vip = *made;
  net[0].own(std::move(made));
  std::shared_ptr<Protocol> addr = make_vipaddr(net[0].host(), "vipaddr", net[0].ethernet(), net[0].ip(), a.table);
  SinkProtocol& sink = net[0].add<SinkProtocol>();
  const auto frames = [&] { return test::asked<control::Statistics>(net[0].ip()).sent; };
  const auto push = [&] {
    const Shepherd inside(net[0].monitor());
    auto session = vip.open(sink, net.to(1));
    ASSERT_TRUE(session);
    ASSERT_EQ((*session)->push(net.message(0, "hello")), Errc::ok);
  };
  push();
  EXPECT_EQ(frames(), 1U);
  TableHost b(net[1]);
  net.world.run_for(10ms);
  push();
  EXPECT_EQ(frames(), 2U) << "heard, but not of this number";
  b.advertise(240);
  net.world.run_for(10ms);
  push();
  EXPECT_EQ(frames(), 2U);
  b.advertise(243);
  net.world.run_for(10ms);
  const Shepherd inside(net[0].monitor());
  auto session = addr->open(sink, net.to(1, 241));
  ASSERT_TRUE(session);
  EXPECT_EQ(&(*session)->protocol(), &net[0].ip());
  session = addr->open(sink, net.to(1, 243));
  ASSERT_TRUE(session);
  EXPECT_EQ(&(*session)->protocol(), &net[0].ethernet());
}

/// For a host whose highest protocol is `top`: each message takes the path that is best when it is sent.
void expect_best_way(const std::string& top) {
  SCOPED_TRACE(top);
  SimHosts net(2);
  SimHost& machine = net[0];
  TableHost a(machine);
  const auto owned = [&](const std::shared_ptr<Protocol>& made) -> Protocol& {
    machine.own(made);
    return *made;
  };
  Protocol& addr = owned(make_vipaddr(machine.host(), "vipaddr", machine.ethernet(), machine.ip(), a.table));
  Protocol& fragment = owned(*make_fragment(machine.host(), "fragment", addr, {}));
  Protocol& vipsize = owned(*make_vipsize(machine.host(), "vipsize", addr, fragment, {}));
  Protocol& vip = owned(*make_vip(machine.host(), "vip", machine.ethernet(), machine.ip(), a.table, {}));
  SinkProtocol& sink = machine.add<SinkProtocol>();
  const Shepherd inside(machine.monitor());
  auto session = (top == "fragment" ? fragment : top == "vipsize" ? vipsize : vip).open(sink, net.to(1));
  ASSERT_TRUE(session);
  const auto goes_over_ip = [&] {
    const auto before = test::asked<control::Statistics>(machine.ip()).sent;
    EXPECT_EQ((*session)->push(net.message(0, "hello")), Errc::ok);
    return test::asked<control::Statistics>(machine.ip()).sent != before;
  };
  const auto pass = [&](Duration time) {
    machine.monitor().unlock();
    net.world.run_for(time);
    machine.monitor().lock();
  };
  EXPECT_TRUE(goes_over_ip());
  TableHost b(net[1], {.lifetime = 3s});
  b.advertise(240);
  b.advertise(protocol_numbers::kFragment);
  pass(10ms);
  EXPECT_FALSE(goes_over_ip()) << "it has been heard";
  net.world.set_group(net[1], 1);
  pass(4s);
  EXPECT_TRUE(goes_over_ip()) << "it is not heard any more";
}

TEST(VipHosts, what_has_begun_over_ip_goes_over_the_ethernet_as_long_as_the_peer_is_heard) {
  for (const char* const top : {"fragment", "vipsize", "vip"}) expect_best_way(top);
}

TEST(VipHosts, vip_advertises_what_it_hears) {
  SimHosts net(2);
  TableHost a(net[0]), b(net[1]);
  std::shared_ptr<Protocol> made = std::move(*make_vip(net[0].host(), "vip", net[0].ethernet(), net[0].ip(), a.table));
  Protocol& vip = *made;
  net[0].own(std::move(made));
  SinkProtocol& sink = net[0].add<SinkProtocol>();
  const auto enable = [&](bool on) {
    const Shepherd inside(net[0].monitor());
    if (on) {
      ASSERT_TRUE(vip.open_enable(sink, SimHosts::anyone()));
    } else {
      vip.open_disable(sink, SimHosts::anyone());
    }
  };
  enable(true);
  net.world.run_for(10ms);
  EXPECT_TRUE(b.believes(net.address(0), 240));
  enable(false);
  net.world.run_for(10ms);
  EXPECT_FALSE(b.believes(net.address(0), 240));
}

TEST(VipHosts, a_host_that_is_believed_for_a_shorter_time_than_those_before_is_forgotten_in_time) {
  SimHosts net(2);
  TableHost a(net[0]);
  SinkProtocol& liar = net[1].add<SinkProtocol>("liar");
  net.world.run_for(10ms);
  inject(net, liar, advertisement({0x0a000063}, 60'000));
  inject(net, liar, advertisement({0x0a000064}, 500));
  net.world.run_for(10ms);
  EXPECT_EQ(a.statistics().state, 2U);
  const std::uint32_t before = net[0].host().peers().path_changes({0x0a000064});
  net.world.run_for(3s);
  EXPECT_EQ(a.statistics().state, 1U);
  EXPECT_NE(net[0].host().peers().path_changes({0x0a000064}), before) << "who speaks to it has to look for another way";
}

}  // namespace
}  // namespace lrpc::netrpc
