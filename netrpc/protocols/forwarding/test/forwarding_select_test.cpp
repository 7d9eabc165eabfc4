#include "netrpc/protocols/forwarding/forwarding_select.h"

#include <algorithm>
#include <array>

#include "fake_calls.h"
#include "netrpc/protocols/select/test/select_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// Each host forwards command 7 to the next one; the last host forwards it to `last`.
SelectHosts::Make chain(std::size_t count, std::size_t last) {
  return [=](Host& host, Protocol& channel, std::size_t index) {
    ForwardingSelectOptions options;
    const std::size_t next = index + 1 < count ? index + 1 : last;
    if (index != next) options.routes[7] = HostAddress{0x0a000001U + static_cast<std::uint32_t>(next)};
    auto made = make_forwarding_select(host, "select", channel, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  };
}

TEST(ForwardingSelectTest, a_request_is_passed_on_to_the_host_that_serves_it_and_its_reply_comes_back) {
  SelectHosts net(4, chain(4, 3));
  net.serve(3, 7);
  Session& session = net.open(0, 1, 7);
  for (int i = 0; i < 3; ++i) {
    TestCall call;
    net.call(0, session, call, "hello");
    net.world.run_for(10ms);
    EXPECT_EQ(call.completions, 1);
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(call.reply, "hello");
  }
  EXPECT_EQ(net.servers[3]->executed.size(), 3U);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[1]).sessions, 0U);
}

TEST(ForwardingSelectTest, what_is_served_here_is_not_passed_on) {
  SelectHosts net(3, chain(3, 2));
  net.serve(1, 7);
  net.serve(2, 7);
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, "hello");
  net.world.run_for(10ms);
  EXPECT_EQ(net.servers[1]->executed.size(), 1U);
  EXPECT_EQ(net.servers[2]->executed.size(), 0U);
}

TEST(ForwardingSelectTest, the_end_of_the_chain_may_say_that_it_does_not_serve_it_either) {
  SelectHosts net(3, chain(3, 2));
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, "hello");
  net.world.run_for(10ms);
  EXPECT_EQ(call.outcome, Errc::bad_procedure);
  TestCall other;
  net.call(0, net.open(0, 1, 8), other, "hello");
  net.world.run_for(10ms);
  EXPECT_EQ(other.outcome, Errc::bad_procedure);
}

TEST(ForwardingSelectTest, hosts_that_forward_in_a_circle_are_found_out) {
  SelectHosts net(3, chain(3, 1));
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, "hello");
  net.world.run_for(100ms);
  EXPECT_EQ(call.outcome, Errc::host_unreachable);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[1]).sent + SelectHosts::statistics(*net.selects[2]).sent, 4U);
}

TEST(ForwardingSelectTest, a_host_behind_that_is_dead_is_unreachable_or_has_failed_the_call) {
  SelectHosts net(3, chain(3, 2));
  net.serve(2, 7);
  net.world.set_group(net[2], 1);
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, "hello");
  net.world.run_for(30s);
  EXPECT_EQ(call.outcome, Errc::host_unreachable);
  net.world.heal();
  TestCall warm;
  net.call(0, net.open(0, 1, 7), warm, "hello");
  net.world.run_for(10ms);
  EXPECT_EQ(warm.outcome, Errc::ok);
  net.world.set_group(net[2], 1);
  TestCall lost;
  net.call(0, net.open(0, 1, 7), lost, "hello");
  net.world.run_for(30s);
  EXPECT_EQ(lost.outcome, Errc::call_failed);
}

TEST(ForwardingSelectTest, a_reply_that_a_link_behind_no_longer_carries_loses_its_call) {
  SelectHosts net(3, chain(3, 2));
  net.serve(2, 7);
  net.servers[2]->at_once = false;
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, std::string(1000, 'x'));
  net.world.run_for(1ms);
  static_cast<SimEthernet&>(net[2].ethernet()).set_mtu(600);
  net.servers[2]->answer_next();
  net.world.run_for(1ms);
  EXPECT_EQ(call.outcome, Errc::call_lost);
}

TEST(ForwardingSelectTest, a_request_that_a_link_behind_does_not_carry_loses_its_call) {
  SelectHosts net(3, chain(3, 2));
  net.serve(2, 7);
  static_cast<SimEthernet&>(net[1].ethernet()).set_mtu(600);
  TestCall call;
  net.call(0, net.open(0, 1, 7), call, std::string(1000, 'x'));
  net.world.run_for(10ms);
  EXPECT_EQ(call.outcome, Errc::call_lost);
  EXPECT_TRUE(net.servers[2]->executed.empty());
}

TEST(ForwardingSelectTest, requests_for_a_slow_host_leave_buffers_and_channels_for_those_for_others) {
  const auto make = [](Host& host, Protocol& channel, std::size_t index) {
    ForwardingSelectOptions options;
    options.select.channels = 64;
    if (index == 1) options.routes = {{7, HostAddress{0x0a000003}}, {8, HostAddress{0x0a000004}}};
    auto made = make_forwarding_select(host, "select", channel, options);
    EXPECT_TRUE(made);
    return std::move(*made);
  };
  SelectHosts net(4, make, std::size_t{1} << 20);
  net.serve(2, 7);
  net.serve(3, 8);
  net.servers[2]->at_once = false;
  const std::string large(1000, 'x');
  std::array<TestCall, 64> calls;
  Session& slow = net.open(0, 1, 7);
  for (TestCall& call : calls) net.call(0, slow, call, large);
  net.world.run_for(100ms);
  const auto ended = [&calls](Errc outcome) {
    return std::ranges::count_if(calls, [&](const TestCall& one) { return one.done() && one.outcome == outcome; });
  };
  const auto refused = ended(Errc::limit_reached);
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 64);
  TestCall other;
  net.call(0, net.open(0, 1, 8), other, large);
  net.world.run_for(100ms);
  EXPECT_EQ(other.reply, large);

  while (!net.servers[2]->pending.empty()) net.servers[2]->answer_next();
  net.servers[2]->at_once = true;
  net.world.run_for(100ms);
  EXPECT_EQ(ended(Errc::ok), 64 - refused);
  TestCall again;
  net.call(0, slow, again, large);
  net.world.run_for(100ms);
  EXPECT_EQ(again.reply, large);
}

TEST(ForwardingSelectTest, a_host_to_which_there_is_no_free_channel_is_not_said_to_be_unreachable) {
  PacketWire wire(1);
  test::FakeCalls calls(wire[0].host);
  ForwardingSelectOptions options;
  options.routes[7] = PacketWire::address(1);
  const auto select = make_forwarding_select(wire[0].host, "select", calls, options);
  ASSERT_TRUE(select);
  for (const Errc refusal : {Errc::limit_reached, Errc::host_unreachable}) {
    calls.refuses = refusal;
    calls.arrive(std::string("\1\0\7\0data", 8));
    const char status = refusal == Errc::limit_reached ? '\2' : '\4';
    EXPECT_EQ(calls.replies.back(), std::string("\2\0\7", 3) + status);
  }
}

TEST(ForwardingSelectTest, a_client_that_has_gone_meanwhile_is_not_answered) {
  SelectHosts net(3, chain(3, 2));
  net.serve(2, 7);
  net.servers[2]->at_once = false;
  Session& session = net.open(0, 1, 7);
  TestCall call;
  net.call(0, session, call, "hello", 50ms);
  net.world.run_for(60ms);
  EXPECT_EQ(call.outcome, Errc::call_aborted);
  net.servers[2]->answer_next();
  net.world.run_for(1s);
  EXPECT_EQ(call.completions, 1);
  EXPECT_EQ(SelectHosts::statistics(*net.selects[1]).sessions, 0U);
}

TEST(ForwardingSelectTest, its_routes_are_checked) {
  const ProtocolKind kind = forwarding_select_kind();
  PacketWire wire(1);
  const auto make = [&](const std::string& routes) {
    InstanceParts parts{wire[0].host, "select", {&wire[0].end}, {}};
    parts.options.set("routes", routes);
    return kind.make(parts).code();
  };
  EXPECT_EQ(make(""), Errc::ok);
  EXPECT_EQ(make("7=10.0.0.3, 8=10.0.0.4"), Errc::ok);
  for (const char* wrong :
       {"7", "7=", "=10.0.0.1", "0=10.0.0.1", "70000=10.0.0.1", "7=10.0.0", "7=10.0.0.3,,", "x=10.0.0.1"})
    EXPECT_EQ(make(wrong), Errc::invalid_argument) << wrong;
}

}  // namespace
}  // namespace lrpc::netrpc
