// VIPsize over VIPaddr and FRAGMENT, as in Figure 3 (b) of RPC in the x-Kernel.
#include "netrpc/protocols/vipsize/vipsize.h"

#include <gtest/gtest.h>

#include "netrpc/protocols/fragment/fragment.h"
#include "netrpc/protocols/vipaddr/vipaddr.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

struct StackHost {
  explicit StackHost(SimHost& on, const VipSizeOptions& options = {}) : machine(on) {
    vipaddr = own(make_vipaddr(on.host(), "vipaddr", on.ethernet(), on.ip()));
    fragment = own(std::move(*make_fragment(on.host(), "fragment", *vipaddr)));
    vipsize = own(std::move(*make_vipsize(on.host(), "vipsize", *vipaddr, *fragment, options)));
    sink = &machine.add<SinkProtocol>();
  }
  Protocol* own(std::unique_ptr<Protocol> made) {
    std::shared_ptr<Protocol> shared = std::move(made);
    machine.own(shared);
    return shared.get();
  }
  static control::Statistics statistics(Protocol& protocol) { return test::asked<control::Statistics>(protocol); }
  void enable() {
    const Shepherd inside(machine.monitor());
    ASSERT_TRUE(vipsize->open_enable(*sink, SimHosts::anyone()));
  }
  void drop_idle() {
    sink->sessions.clear();
    const Shepherd inside(machine.monitor());
    for (Protocol* protocol : {vipsize, fragment, &machine.ethernet(), &machine.ip()}) {
      control::Request drop = control::DropIdle{};
      EXPECT_EQ(protocol->control(drop), Errc::ok);
    }
  }
  SimHost& machine;
  Protocol* vipaddr = nullptr;
  Protocol* fragment = nullptr;
  Protocol* vipsize = nullptr;
  SinkProtocol* sink = nullptr;
};

class VipSize : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  SimHosts net{3, GetParam()};
  StackHost a{net[0]};
  StackHost b{net[1]};

  SessionRef open(StackHost& from, std::size_t to) {
    const Shepherd inside(from.machine.monitor());
    auto opened = from.vipsize->open(*from.sink, net.to(to));
    EXPECT_TRUE(opened) << opened.error().message();
    return *opened;
  }
  Errc push(StackHost& from, const SessionRef& session, std::size_t size) {
    const Shepherd inside(from.machine.monitor());
    return session->push(net.message(from.machine.index(), std::string(size, 'x')));
  }
  [[nodiscard]] std::size_t bound() const { return GetParam() == 1 ? 1500 : 1480; }
};

INSTANTIATE_TEST_SUITE_P(LocalAndDistant, VipSize, ::testing::Values(1U, 2U),
                         [](const auto& shown) { return shown.param == 1 ? "local" : "distant"; });

TEST_P(VipSize, small_messages_bypass_fragment_and_large_ones_do_not) {
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  EXPECT_EQ(push(a, session, bound()), Errc::ok);
  EXPECT_EQ(StackHost::statistics(*a.fragment).sent, 0U);
  EXPECT_EQ(push(a, session, bound() + 1), Errc::ok);
  EXPECT_EQ(StackHost::statistics(*a.fragment).sent, 2U);
  EXPECT_EQ(push(a, session, 16384), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(b.sink->received.size(), 4U);
  EXPECT_EQ(b.sink->received[0].size(), 100U);
  EXPECT_EQ(b.sink->received[1].size(), bound());
  EXPECT_EQ(b.sink->received[2].size(), bound() + 1);
  EXPECT_EQ(b.sink->received[3].size(), 16384U);
  EXPECT_EQ(b.sink->opened.size(), 1U) << "one session of the peer, whichever way its messages came";
  EXPECT_EQ(b.sink->from, std::vector<HostAddress>(4, net.address(0)));
}

TEST_P(VipSize, a_peer_whose_first_message_is_large_is_answered_with_small_ones_past_fragment) {
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 5000), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  EXPECT_EQ(push(b, b.sink->sessions[0], 100), Errc::ok);
  EXPECT_EQ(push(b, b.sink->sessions[0], 5000), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(a.sink->received.size(), 2U);
  EXPECT_TRUE(a.sink->opened.empty()) << "both came to the session that was opened";
  EXPECT_EQ(StackHost::statistics(*b.fragment).sent, 4U);
}

TEST_P(VipSize, a_peer_that_only_sent_small_messages_can_be_answered_with_large_ones) {
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  EXPECT_EQ(push(b, b.sink->sessions[0], 16384), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(a.sink->received.size(), 1U);
  EXPECT_EQ(a.sink->received[0].size(), 16384U);
}

/// No device's table is full, so no device asks for room.
TEST(VipSizeSessions, are_left_to_peers_and_to_this_host_by_strangers_that_go_on_sending) {
  constexpr std::size_t kStrangers = 32;
  SimHosts net(kStrangers + 3);
  StackHost b(net[0], {.sessions = kStrangers});
  b.enable();
  std::vector<SinkProtocol*> sinks(kStrangers + 3);
  const auto send = [&](std::size_t from) {
    {
      const Shepherd inside(net[from].monitor());
      if (sinks[from] == nullptr) sinks[from] = &net[from].add<SinkProtocol>();
      const auto lower = net[from].ethernet().open(*sinks[from], net.to(0));
      ASSERT_TRUE(lower) << lower.error().message();
      EXPECT_EQ((*lower)->push(net.message(from, "x")), Errc::ok);
    }
    net.world.run_for(100us);
    const Shepherd inside(net[0].monitor());
    b.sink->sessions.clear();  // the test keeps no session
  };
  for (int round = 0; round < 2; ++round) {
    for (std::size_t from = 1; from <= kStrangers; ++from) send(from);
    net.world.run_for(20ms);
  }
  b.sink->from.clear();
  send(kStrangers + 1);
  EXPECT_EQ(b.sink->from, std::vector{net.address(kStrangers + 1)});
  for (std::size_t from = 1; from <= kStrangers; ++from) send(from);
  EXPECT_LE(StackHost::statistics(*b.vipsize).sessions, kStrangers - kStrangers / 4);
  const Shepherd inside(net[0].monitor());
  EXPECT_TRUE(b.vipsize->open(*b.sink, net.to(kStrangers + 2)));
}

TEST_P(VipSize, maximum_is_that_of_large_messages_and_optimum_that_of_small_ones) {
  const SessionRef session = open(a, 1);
  const auto maximum = test::asked<control::MaximumMessage>(*session);
  EXPECT_EQ(test::asked<control::OptimumMessage>(*session).size, bound());
  EXPECT_EQ(maximum.size, 16 * (bound() - 23));
  EXPECT_EQ(push(a, session, maximum.size + 1 > 20000 ? 20000 : maximum.size), Errc::ok);
}

TEST_P(VipSize, nothing_is_left_in_any_layer_after_idle_state_was_dropped) {
  b.enable();
  {
    const SessionRef session = open(a, 1);
    for (const std::size_t size : {10U, 16000U, 10U}) EXPECT_EQ(push(a, session, size), Errc::ok);
    net.world.run_for(10s);
  }
  for (StackHost* host : {&a, &b}) {
    host->drop_idle();
    for (Protocol* protocol : {host->vipsize, host->fragment, &host->machine.ethernet(), &host->machine.ip()}) {
      EXPECT_EQ(StackHost::statistics(*protocol).sessions, 0U) << protocol->name();
      EXPECT_EQ(StackHost::statistics(*protocol).state, 0U) << protocol->name();
    }
    EXPECT_EQ(host->machine.pool().in_use(), 0U);
  }
}

TEST_P(VipSize, a_peer_that_was_heard_is_answered_where_it_is_after_its_ethernet_address_has_changed) {
  b.enable();
  const SessionRef session = open(a, 1);
  for (const std::size_t size : {10U, 5000U}) EXPECT_EQ(push(a, session, size), Errc::ok);
  net.world.run_for(10ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  a.machine.change_ethernet_address();
  {
    const Shepherd inside(b.machine.monitor());
    b.machine.host().peers().path_changed(net.address(0));
  }
  for (const std::size_t size : {10U, 5000U}) EXPECT_EQ(push(b, b.sink->sessions[0], size), Errc::ok);
  net.world.run_for(10ms);
  EXPECT_EQ(a.sink->received.size(), 2U);
}

TEST_P(VipSize, the_way_to_a_peer_is_not_looked_for_again_when_that_to_another_one_changes) {
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  a.machine.change_ethernet_address();  // a device's session that is opened anew shows the new address
  b.machine.change_ethernet_address();
  const auto sessions = [&] { return StackHost::statistics(a.machine.ethernet()).sessions; };
  const std::size_t before = sessions();
  {
    const Shepherd inside(a.machine.monitor());
    a.machine.host().peers().path_changed(net.address(2));
  }
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(sessions(), before);
  {
    const Shepherd inside(a.machine.monitor());
    a.machine.host().peers().path_changed(net.address(1));
  }
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(sessions(), before + (GetParam() == 1 ? 1 : 0));
}

TEST_P(VipSize, what_does_not_fit_a_link_that_has_shrunk_goes_through_fragment) {
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, bound()), Errc::ok);
  EXPECT_EQ(push(a, session, bound() + 1), Errc::ok);
  net.world.run_for(1ms);
  static_cast<SimEthernet&>(net[0].ethernet()).set_mtu(1400);
  const std::vector<std::size_t> sizes{1450, 1401, 1400, 5000, 100};
  for (const std::size_t size : sizes) {
    EXPECT_EQ(push(a, session, size), Errc::ok) << size;
    net.world.run_for(10ms);
  }
  ASSERT_EQ(b.sink->received.size(), 2 + sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_EQ(b.sink->received[2 + i].size(), sizes[i]);
  EXPECT_EQ(b.sink->opened.size(), 1U);
}

TEST_P(VipSize, a_link_that_has_grown_is_used_whole_by_the_sessions_that_there_are) {
  if (GetParam() != 1U) GTEST_SKIP() << "the simulation's IP has one packet size";
  b.enable();
  const SessionRef session = open(a, 1);
  static_cast<SimEthernet&>(net[0].ethernet()).set_mtu(1000);
  EXPECT_EQ(push(a, session, 1400), Errc::ok);
  EXPECT_EQ(push(a, session, 900), Errc::ok);
  static_cast<SimEthernet&>(net[0].ethernet()).set_mtu(1500);
  net.world.run_for(2min);
  const auto fragments = StackHost::statistics(*a.fragment).sent;
  EXPECT_EQ(push(a, session, 1500), Errc::ok);
  EXPECT_EQ(StackHost::statistics(*a.fragment).sent, fragments) << "it goes past FRAGMENT";
  EXPECT_EQ(push(a, session, 3 * 1400), Errc::ok);
  EXPECT_EQ(StackHost::statistics(*a.fragment).sent, fragments + 3) << "cut as large as it may be";
  net.world.run_for(10ms);
  EXPECT_EQ(b.sink->received.size(), 4U);
}

TEST_P(VipSize, a_peer_whose_host_was_not_known_at_first_has_one_session_for_all_its_messages) {
  static_cast<SimEthernet&>(net[1].ethernet()).set_reverse(false);
  b.enable();
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 100), Errc::ok);
  net.world.run_for(1ms);
  ASSERT_EQ(b.sink->sessions.size(), 1U);
  EXPECT_EQ(open(b, 0), b.sink->sessions[0]);
  EXPECT_EQ(push(a, session, 5000), Errc::ok);  // over a session of FRAGMENT, which does not know the host either
  EXPECT_EQ(push(b, b.sink->sessions[0], 5000), Errc::ok);
  net.world.run_for(10ms);
  EXPECT_EQ(b.sink->received.size(), 2U);
  EXPECT_EQ(b.sink->opened.size(), 1U);
  EXPECT_EQ(a.sink->received.size(), 1U);
  EXPECT_EQ(StackHost::statistics(*b.vipsize).sessions, 1U);
}

TEST_P(VipSize, strangers_are_refused_where_a_number_is_only_opened) {
  open(b, 2);
  const SessionRef session = open(a, 1);
  EXPECT_EQ(push(a, session, 10), Errc::ok);
  EXPECT_EQ(push(a, session, 3000), Errc::ok);
  net.world.run_for(10ms);
  EXPECT_EQ(b.sink->received.size(), 0U);
}

}  // namespace
}  // namespace lrpc::netrpc
