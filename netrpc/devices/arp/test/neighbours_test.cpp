// Neighbours, with a kernel whose answers come late or never.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>

#include "netrpc/devices/arp/neighbours.h"
#include "netrpc/devices/device/test/device_addresses.h"
#include "netrpc/test_support/real_host.h"

namespace lrpc::netrpc::test {
namespace {

constexpr HostAddress kThird{0x0a00004d};

class NeighboursTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = why_no_namespaces()) GTEST_SKIP() << *why;
    pair_.emplace();
    pair_->left.ip("neigh replace 10.0.0.2 dev left nud permanent lladdr 02:00:00:00:00:02");
    host_ = std::make_unique<RealHost>(pair_->left, EngineKind::automatic, "host");
  }
  void TearDown() override {
    if (!host_) return;
    host_->inside([&] {
      neighbours_.reset();
      asker_.reset();
    });
  }
  void make() {
    host_->inside([&] {
      auto link = find_interface("left");
      ASSERT_TRUE(link);
      index_ = link.value().index;
      asker_ = std::move(Asker::make(**host_, host_->engine())).value();
      neighbours_ = std::move(Neighbours::make(**host_, host_->engine(), *asker_, index_)).value();
    });
  }
  /// From now on no question to the kernel is answered until `free`.
  void hold(std::future<void> free) {
    ask([until = std::make_shared<std::future<void>>(std::move(free))](rtnetlink::Requests&) {
      until->wait();
      return Asker::Answer();
    });
  }
  /// From now on questions to the kernel get no answer.
  void close_requests() {
    ask([](rtnetlink::Requests& kernel) {
      std::destroy_at(&kernel);
      std::construct_at(&kernel);
      return Asker::Answer();
    });
  }
  void open_requests() {
    ask([](rtnetlink::Requests& kernel) {
      EXPECT_TRUE(kernel.open());
      return Asker::Answer();
    });
  }
  /// Returns when all earlier questions have been answered.
  void settle() {
    bool answered = false;
    ask([&answered](rtnetlink::Requests&) { return [&answered] { answered = true; }; });
    EXPECT_TRUE(host_->wait([&] { return answered; }));
  }
  Errc resolve_inside(HostAddress host) {
    EthernetAddress ethernet;
    return neighbours_->resolve(host, ethernet);
  }
  Errc resolve(HostAddress host) {
    Errc outcome = Errc::ok;
    host_->inside([&] { outcome = resolve_inside(host); });
    return outcome;
  }

  std::optional<JoinedPair> pair_;
  std::unique_ptr<RealHost> host_;
  std::unique_ptr<Asker> asker_;
  std::unique_ptr<Neighbours> neighbours_;
  int index_ = 0;

 private:
  void ask(Asker::Question question) {
    host_->inside([&] { ASSERT_TRUE(asker_->ask(std::move(question))); });
  }
};

TEST(EthernetKeys, lie_elsewhere_in_the_maps_of_each_host) {
  constexpr EthernetAddress kEthernet{{2, 0, 0, 0, 0, 2}};
  EXPECT_NE((EthernetKey{1, kEthernet}.hash()), (EthernetKey{2, kEthernet}.hash()));
  EXPECT_EQ((EthernetKey{1, kEthernet}.hash()), (EthernetKey{1, kEthernet}.hash()));
}

TEST_F(NeighboursTest, a_known_neighbour_stays_known_when_the_kernel_does_not_say_where_its_route_leads) {
  make();
  close_requests();
  EXPECT_EQ(resolve(kB), Errc::ok);
  settle();
  EXPECT_EQ(resolve(kB), Errc::ok);
  host_->inside([&] { EXPECT_FALSE(neighbours_->routed_away(kB)); });
}

TEST_F(NeighboursTest, a_host_that_the_kernel_says_nothing_about_is_not_taken_for_routed_away) {
  make();
  host_->inside([&] { neighbours_->use_interface(index_); });  // forgets all entries
  close_requests();
  EXPECT_EQ(resolve(kB), Errc::host_unreachable);
  settle();
  host_->inside([&] {
    EXPECT_FALSE(neighbours_->routed_away(kB));
    EXPECT_TRUE(neighbours_->may_answer(kB));
  });
}

TEST_F(NeighboursTest, an_answer_about_a_route_that_never_comes_is_asked_for_again) {
  pair_->left.ip("route add 10.0.0.2/32 via 10.0.0.99");
  make();
  close_requests();
  EXPECT_EQ(resolve(kB), Errc::ok);
  settle();
  host_->inside([&] { EXPECT_FALSE(neighbours_->routed_here(kB)) << "so that its sessions go on asking"; });
  open_requests();
  EXPECT_TRUE(host_->becomes([&] { return resolve_inside(kB) == Errc::host_unreachable; }));
}

TEST_F(NeighboursTest, hosts_without_a_way_are_not_on_the_link) {
  make();
  for (const char* const type : {"unreachable", "prohibit", "blackhole"}) {
    pair_->left.ip(std::string("route add ") + type + " 10.0.0.2/32");
    EXPECT_TRUE(host_->becomes([&] { return resolve_inside(kB) != Errc::ok && neighbours_->routed_away(kB); })) << type;
    pair_->left.ip("route del 10.0.0.2/32");
    EXPECT_TRUE(host_->becomes([&] { return resolve_inside(kB) == Errc::ok; })) << type;
  }
}

TEST_F(NeighboursTest, an_answer_counts_when_routes_to_other_hosts_have_changed_meanwhile) {
  pair_->left.ip("neigh replace 10.0.0.77 dev left nud permanent lladdr 02:00:00:00:00:77");
  make();
  host_->inside([&] { neighbours_->use_interface(index_); });  // forgets all entries
  ASSERT_TRUE(host_->becomes([&] { return resolve_inside(kThird) == Errc::ok && neighbours_->routed_here(kThird); }));
  std::promise<void> free;
  hold(free.get_future());
  EXPECT_EQ(resolve(kB), Errc::host_unreachable);
  pair_->left.ip("route add 10.0.0.77/32 dev left");
  EXPECT_TRUE(host_->becomes([&] { return !neighbours_->routed_here(kThird); }));
  free.set_value();
  settle();
  EXPECT_EQ(resolve(kB), Errc::ok);
}

TEST_F(NeighboursTest, lost_news_of_routes_costs_no_neighbour) {
  make();
  std::promise<void> free;
  hold(free.get_future());
  std::uint64_t before = 0;
  host_->inside([&] { before = neighbours_->changes(); });
  pair_->left.ip_often("route replace 192.0.2.0/24 dev left mtu 100");
  EXPECT_TRUE(host_->becomes([&] { return neighbours_->changes() != before; }));
  EXPECT_EQ(resolve(kB), Errc::ok);
  free.set_value();
}

TEST_F(NeighboursTest, lost_news_of_neighbours_brings_none_back_that_routes_lead_to_another_way) {
  pair_->left.ip("route add 10.0.0.2/32 via 10.0.0.99");
  make();
  ASSERT_TRUE(host_->becomes([&] { return resolve_inside(kB) == Errc::host_unreachable; }));
  const std::uint32_t before = (*host_)->peers().path_changes();
  pair_->left.ip_often("neigh replace 10.0.0.77 dev left nud permanent lladdr 02:00:00:00:01:0");
  EXPECT_TRUE(host_->becomes([&] { return (*host_)->peers().path_changes() != before; }));
  EXPECT_TRUE(host_->becomes([&] { return resolve_inside(kThird) == Errc::ok; }));
  EXPECT_EQ(resolve(kB), Errc::host_unreachable);
}

TEST_F(NeighboursTest, routes_are_asked_for_again_when_a_link_goes_down) {
  pair_->left.ip("link add spare type veth peer name other");
  pair_->left.ip("address add 10.8.0.1/24 dev spare");
  pair_->left.ip("link set spare up");
  pair_->left.ip("link set other up");
  pair_->left.ip("route add 10.0.0.2/32 via 10.8.0.254");
  make();
  ASSERT_TRUE(host_->becomes([&] { return resolve_inside(kB) != Errc::ok && neighbours_->routed_away(kB); }));
  pair_->left.ip("link set spare down");
  EXPECT_TRUE(host_->becomes([&] { return !neighbours_->routed_away(kB); }));
}

}  // namespace
}  // namespace lrpc::netrpc::test
