// What only ETH has: the link, its addresses, and the privilege to use it.
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "device_addresses.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/devices/arp/neighbours.h"
#include "netrpc/devices/eth/eth.h"
#include "netrpc/devices/ip/ip.h"
#include "netrpc/devices/udp/udp.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

class EthLink : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    pair_.emplace();
    a_ = std::make_unique<RealHost>(pair_->left, EngineKind::automatic, "a");
    a_->inside([&] {
      eth_ = &a_->keep(make_eth(**a_, "eth", {}));
      talker_ = &a_->keep(std::make_unique<Talker>(**a_, false));
    });
  }
  void TearDown() override {
    if (a_) a_->inside([&] { distant_ = {}; });
  }
  static Errc resolve_inside(Protocol& eth, HostAddress host, EthernetAddress& ethernet) {
    control::Resolve question{host, {}};
    const Errc outcome = control::ask(eth, question);
    ethernet = question.ethernet;
    return outcome;
  }
  Errc resolve(HostAddress host, EthernetAddress& ethernet) {
    Errc outcome = Errc::ok;
    a_->inside([&] { outcome = resolve_inside(*eth_, host, ethernet); });
    return outcome;
  }
  /// resolve() does not wait for ARP's answer: the answer arrives later.
  bool becomes_resolved(HostAddress host, EthernetAddress& ethernet) {
    return a_->becomes([&] { return resolve_inside(*eth_, host, ethernet) == Errc::ok; });
  }
  bool paths_change_from(std::uint32_t before) {
    return a_->becomes([&] { return (*a_)->peers().path_changes() != before; });
  }
  SessionRef open_inside(const Participant& remote) {
    auto opened = eth_->open(*talker_, {kNumber, {}, remote});
    if (!opened) throw std::runtime_error(opened.error().message());
    return *std::move(opened);
  }
  Errc push_inside() { return distant_->push(Message::make((*a_)->pool(), 60)); }
  /// Starts the other host, which collects what arrives.
  void listen() {
    b_ = std::make_unique<RealHost>(pair_->right, EngineKind::automatic, "b");
    b_->inside([&] {
      Protocol& eth = b_->keep(make_eth(**b_, "eth", {}));
      listener_ = &b_->keep(std::make_unique<Talker>(**b_, false));
      ASSERT_TRUE(eth.open_enable(*listener_, {kNumber, {}, {}}));
    });
  }

  static constexpr ProtocolNumber kNumber = 240;
  std::optional<JoinedPair> pair_;
  std::unique_ptr<RealHost> a_;
  std::unique_ptr<RealHost> b_;
  Protocol* eth_ = nullptr;
  Talker* talker_ = nullptr;
  Talker* listener_ = nullptr;
  SessionRef distant_;
};

TEST_F(EthLink, a_host_on_the_link_is_resolved_both_ways) {
  EthernetAddress ethernet;
  ASSERT_TRUE(becomes_resolved(kB, ethernet));
  EXPECT_TRUE(ethernet.known());
  EXPECT_EQ(a_->asked(*eth_, control::ResolveReverse{ethernet, {}}).host, kB);
}

TEST_F(EthLink, nobody_waits_for_a_host_to_be_resolved_and_the_paths_change_when_it_is) {
  EthernetAddress ethernet;
  const std::uint32_t before = (*a_)->peers().path_changes();
  EXPECT_EQ(resolve(kB, ethernet), Errc::host_unreachable) << "its answer cannot have been read yet";
  EXPECT_TRUE(paths_change_from(before));
  EXPECT_EQ(resolve(kB, ethernet), Errc::ok);
}

TEST_F(EthLink, nobody_waits_inside_the_monitor_while_the_kernel_does_not_answer) {
  RealHost host(pair_->left, EngineKind::automatic, "host");
  std::unique_ptr<Asker> asker;
  std::unique_ptr<Neighbours> neighbours;
  std::promise<void> free;  // until then the kernel seems blocked, as by another process that changes links
  std::promise<void> held;
  EthernetAddress ethernet;
  host.inside([&] {
    auto link = find_interface("left");
    ASSERT_TRUE(link);
    asker = std::move(Asker::make(*host, host.engine())).value();
    neighbours = std::move(Neighbours::make(*host, host.engine(), *asker, link.value().index)).value();
    ASSERT_TRUE(asker->ask([&free, &held](rtnetlink::Requests&) {
      held.set_value();
      free.get_future().wait();
      return Asker::Answer();
    }));
  });
  held.get_future().wait();
  host.inside([&] {
    EXPECT_EQ(neighbours->resolve(kB, ethernet), Errc::host_unreachable);
    EXPECT_TRUE(neighbours->may_answer(kB));
    HostAddress unknown;
    EXPECT_EQ(neighbours->resolve_reverse({{2, 0, 0, 0, 0, 9}}, unknown), Errc::host_unreachable);
  });
  free.set_value();
  EXPECT_TRUE(host.becomes([&] { return neighbours->resolve(kB, ethernet) == Errc::ok; }));
  EXPECT_TRUE(ethernet.known());
  host.inside([&] {
    neighbours.reset();
    asker.reset();
  });
}

TEST_F(EthLink, messages_that_are_pushed_before_arp_has_answered_arrive) {
  listen();
  a_->start(1);
  a_->inside([&] {
    distant_ = open_inside({kB, {}});
    for (int i = 0; i < 16; ++i) EXPECT_EQ(push_inside(), Errc::ok);
    EXPECT_FALSE(distant_->participants().remote.ethernet.known()) << "it was known already";
  });
  EXPECT_TRUE(b_->wait([&] { return listener_->received == 16; }));
}

/// A machine with two addresses has one session, because its frames show only the machine that sent them.
TEST_F(EthLink, a_session_in_use_keeps_its_host_when_another_address_of_the_machine_is_opened) {
  constexpr HostAddress kAlias{0x0a000003};
  pair_->right.ip("addr add 10.0.0.3/24 dev right");
  listen();
  EthernetAddress ethernet;
  EthernetAddress of_alias;
  ASSERT_TRUE(becomes_resolved(kB, ethernet));
  ASSERT_TRUE(becomes_resolved(kAlias, of_alias));
  ASSERT_EQ(of_alias, ethernet);
  a_->inside([&] {
    distant_ = open_inside({kB, {}});
    EXPECT_EQ(open_inside({kAlias, {}}), distant_);
    EXPECT_EQ(distant_->peer(), kB);
  });

  // The other address moves to another machine. Messages for this host still go to the same one.
  pair_->left.ip("neigh replace 10.0.0.3 dev left nud permanent lladdr 02:00:00:00:00:07");
  EXPECT_TRUE(a_->becomes([&] { return resolve_inside(*eth_, kAlias, of_alias) == Errc::ok && of_alias != ethernet; }));
  a_->inside([&] {
    EXPECT_EQ(push_inside(), Errc::ok);
    EXPECT_EQ(distant_->participants().remote.ethernet, ethernet);
  });
  EXPECT_TRUE(b_->wait([&] { return listener_->received == 1; }, std::chrono::seconds(20)));
}

TEST_F(EthLink, a_session_that_nobody_uses_takes_the_host_that_is_opened) {
  constexpr HostAddress kAlias{0x0a000003};
  pair_->right.ip("addr add 10.0.0.3/24 dev right");
  EthernetAddress ethernet;
  ASSERT_TRUE(becomes_resolved(kB, ethernet));
  ASSERT_TRUE(becomes_resolved(kAlias, ethernet));
  a_->inside([&] {
    for (const HostAddress host : {kB, kAlias}) EXPECT_EQ(open_inside({host, {}})->peer(), host);
  });
}

TEST_F(EthLink, a_session_to_a_host_that_cannot_be_on_the_link_refuses_messages_as_soon_as_that_is_known) {
  pair_->left.ip("route add default via 10.0.0.2");
  a_->inside([&] { distant_ = open_inside({{0xc0000202}, {}}); });  // behind a gateway
  EXPECT_TRUE(a_->becomes([&] { return push_inside() == Errc::host_unreachable; }));
}

TEST_F(EthLink, hosts_behind_a_gateway_and_silent_ones_are_not_on_the_link) {
  EthernetAddress ethernet;
  EXPECT_EQ(resolve({0x0a000063}, ethernet), Errc::host_unreachable);  // on the link, but no such host
  EXPECT_EQ(resolve({0xc0000201}, ethernet), Errc::host_unreachable);  // no route
  pair_->left.ip("route add default via 10.0.0.2");
  EXPECT_EQ(resolve({0xc0000202}, ethernet), Errc::host_unreachable);  // behind a gateway
  EXPECT_EQ(resolve({0x0a000001}, ethernet), Errc::host_unreachable);  // this host itself
}

TEST_F(EthLink, the_host_learns_its_address_from_the_interface) {
  EXPECT_EQ(a_->operator*().address(), HostAddress{0x0a000001});
}

TEST_F(EthLink, an_interface_that_is_not_there_is_named_in_the_error) {
  EthOptions options;
  options.interface = "nowhere";
  a_->inside([&] {
    auto made = make_eth(**a_, "eth2", options);
    EXPECT_EQ(made.code(), Errc::invalid_argument);
    EXPECT_NE(made.error().message().find("nowhere"), std::string::npos);
  });
}

TEST_F(EthLink, without_the_privilege_the_error_says_which_one_and_what_else_there_is) {
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct all[2]{};
    ASSERT_EQ(::syscall(SYS_capget, &header, all), 0);
    __user_cap_data_struct none[2] = {all[0], all[1]};
    none[0].effective = none[1].effective = 0;  // of this thread only, and for a moment
    a_->inside([&] {
      ASSERT_EQ(::syscall(SYS_capset, &header, none), 0);
      const Status eth = eth_->open_enable(*talker_, {kNumber, {}, {}});
      EXPECT_EQ(eth.code(), Errc::not_permitted);
      EXPECT_NE(eth.error().message().find("CAP_NET_RAW"), std::string::npos);
      EXPECT_NE(eth.error().message().find("UDP"), std::string::npos);
      const Status ip = a_->keep(make_ip(**a_, "ip", {})).open_enable(*talker_, {kNumber, {}, {}});
      EXPECT_EQ(ip.code(), Errc::not_permitted);
      EXPECT_TRUE(a_->keep(make_udp(**a_, "udp", {})).open_enable(*talker_, {kNumber, {}, {}}));
      EXPECT_EQ(::syscall(SYS_capset, &header, all), 0);
    });
  }).join();
}

TEST_F(EthLink, an_address_that_changes_in_lost_news_is_asked_for_again) {
  std::uint8_t last = 1;
  for (const EngineKind kind : {EngineKind::automatic, EngineKind::epoll}) {
    RealHost host(pair_->left, kind, "host");
    Protocol* eth = nullptr;
    host.inside([&] { eth = &host.keep(make_eth(*host, "eth", {})); });
    EthernetAddress ethernet;
    EXPECT_TRUE(host.becomes([&] { return resolve_inside(*eth, kB, ethernet) == Errc::ok; }));
    pair_->left.ip_often(
        "neigh replace 10.0.0.77 dev left nud permanent lladdr 02:00:00:00:01:0",
        "neigh replace 10.0.0.2 dev left nud permanent lladdr 02:00:00:00:00:0" + std::to_string(last));
    EXPECT_TRUE(host.becomes([&] {
      (void)resolve_inside(*eth, kB, ethernet);
      return ethernet == EthernetAddress{{2, 0, 0, 0, 0, last}};
    }));
    ++last;
  }
}

TEST_F(EthLink, when_news_is_lost_the_paths_have_changed_for_who_was_told_that_a_host_does_not_answer) {
  EthernetAddress ethernet;
  EXPECT_EQ(resolve({0x0a000063}, ethernet), Errc::host_unreachable);  // no such host
  const std::uint32_t before = (*a_)->peers().path_changes();
  pair_->left.ip_often("neigh replace 10.0.0.77 dev left nud permanent lladdr 02:00:00:00:01:0");
  EXPECT_TRUE(paths_change_from(before));
}

TEST_F(EthLink, a_neighbour_is_not_on_the_link_while_a_route_leads_to_it_through_a_gateway) {
  EthernetAddress ethernet;
  ASSERT_TRUE(becomes_resolved(kB, ethernet));
  a_->inside([&] { distant_ = open_inside({kB, {}}); });
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t before = (*a_)->peers().path_changes();
    pair_->left.ip("route add 10.0.0.2/32 via 10.0.0.99");
    EXPECT_TRUE(a_->becomes([&] { return push_inside() == Errc::host_unreachable; })) << "for who may know better";
    EXPECT_NE((*a_)->peers().path_changes(), before);
    EXPECT_EQ(resolve(kB, ethernet), Errc::host_unreachable);
    pair_->left.ip("route change 10.0.0.2/32 dev left");
    EXPECT_TRUE(a_->becomes([&] { return push_inside() == Errc::ok; }));
    EXPECT_TRUE(becomes_resolved(kB, ethernet));
    pair_->left.ip("route delete 10.0.0.2/32");
  }
}

TEST_F(EthLink, a_neighbour_that_a_gateway_was_the_way_to_before_is_found_out_with_the_first_message) {
  EthernetAddress ethernet;
  ASSERT_TRUE(becomes_resolved(kB, ethernet));
  pair_->left.ip("route add 10.0.0.2/32 via 10.0.0.99");
  RealHost host(pair_->left, EngineKind::automatic, "host");
  Protocol* eth = nullptr;
  host.inside([&] { eth = &host.keep(make_eth(*host, "eth", {})); });
  EXPECT_TRUE(host.becomes([&] { return resolve_inside(*eth, kB, ethernet) == Errc::host_unreachable; }));
}

TEST_F(EthLink, a_broadcast_reaches_everybody_who_listens) {
  listen();
  a_->inside([&] {
    distant_ = open_inside({{}, kEthernetBroadcast});
    EXPECT_EQ(push_inside(), Errc::ok);
  });
  EXPECT_TRUE(b_->wait([&] { return listener_->received == 1; }));
}

}  // namespace
}  // namespace lrpc::netrpc::test
