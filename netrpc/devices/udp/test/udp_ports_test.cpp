// What identifies a peer of UDP, in the simulation and in graphs: a host, or a host and a port.
#include <gtest/gtest.h>

#include <algorithm>

#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test_hosts.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

constexpr ProtocolNumber kNumber = protocol_numbers::kFirstOfTests;

class SimUdpPortsTest : public testing::Test {
 protected:
  SimUdp& udp(std::size_t host, const UdpPorts& ports) {
    auto made = std::make_shared<SimUdp>(net[host], "udp", ports);
    net[host].own(made);
    return *made;
  }
  /// Makes host 1 echo what comes from any port.
  SinkProtocol& echo(SimUdp& device) {
    auto& sink = net[1].add<SinkProtocol>();
    sink.echo = true;
    const Shepherd inside(net[1].monitor());
    EXPECT_TRUE(device.open_enable(sink, SimHosts::anyone()));
    return sink;
  }
  SessionRef open(SimUdp& device, SinkProtocol& high, std::uint16_t port = 0) {
    ParticipantSet to = net.to(1);
    to.remote.port = port;
    const Shepherd inside(net[0].monitor());
    Result<SessionRef> opened = device.open(high, to);
    EXPECT_TRUE(opened) << opened.error().message();
    return opened ? *opened : SessionRef();
  }
  void push(const SessionRef& session, std::string_view text) {
    const Shepherd inside(net[0].monitor());
    EXPECT_EQ(session->push(net.message(0, text)), Errc::ok);
  }
  static control::Statistics statistics(Protocol& protocol) { return test::asked<control::Statistics>(protocol); }
  SimHosts net{2};
};

TEST_F(SimUdpPortsTest, two_programs_of_one_host_have_sessions_of_their_own_and_get_their_own_answers) {
  SimUdp& server = udp(1, {.here = {}, .any_peer = true});
  SinkProtocol& served = echo(server);
  SimUdp& first = udp(0, {.here = 0});
  SimUdp& second = udp(0, {.here = 0});
  auto& one = net[0].add<SinkProtocol>();
  auto& other = net[0].add<SinkProtocol>();
  const SessionRef from_first = open(first, one);
  const SessionRef from_second = open(second, other);
  push(from_first, "one");
  push(from_second, "other");
  push(from_first, "one again");
  net.world.run_for(1ms);
  EXPECT_EQ(one.received, (std::vector<std::string>{"one", "one again"}));
  EXPECT_EQ(other.received, (std::vector<std::string>{"other"}));
  ASSERT_EQ(served.opened.size(), 2U);
  EXPECT_EQ(served.opened[0].remote.host, net.address(0));
  EXPECT_EQ(served.opened[1].remote.host, net.address(0));
  EXPECT_NE(served.opened[0].remote.port, served.opened[1].remote.port);
  EXPECT_EQ(to_string(served.opened[0]), "240 10.0.0.2 -> 10.0.0.1:" + std::to_string(served.opened[0].remote.port));
  EXPECT_EQ(statistics(server).sessions, 2U);
}

TEST_F(SimUdpPortsTest, what_comes_from_another_port_is_dropped_where_all_hosts_have_the_same) {
  SimUdp& server = udp(1, {});
  SinkProtocol& served = echo(server);
  SimUdp& same = udp(0, {});
  SimUdp& another = udp(0, {.here = 0});
  auto& high = net[0].add<SinkProtocol>();
  push(open(another, high), "from another port");
  push(open(same, high), "from the right one");
  net.world.run_for(1ms);
  EXPECT_EQ(served.received, (std::vector<std::string>{"from the right one"}));
  EXPECT_EQ(statistics(server).malformed, 1U);
  EXPECT_EQ(statistics(server).sessions, 1U);
}

TEST_F(SimUdpPortsTest, a_session_goes_to_the_port_that_the_participant_names) {
  SinkProtocol& usual = echo(udp(1, {.here = {}, .any_peer = true}));
  SinkProtocol& named = echo(udp(1, {.here = 30'000, .any_peer = true}));
  SimUdp& client = udp(0, {.here = 0, .any_peer = true});
  auto& high = net[0].add<SinkProtocol>();
  const SessionRef to_usual = open(client, high);
  const SessionRef to_named = open(client, high, 30'000 + kNumber);
  EXPECT_FALSE(to_usual == to_named);
  EXPECT_TRUE(to_usual == open(client, high, 24'000 + kNumber));
  push(to_named, "named");
  push(to_usual, "usual");
  net.world.run_for(1ms);
  EXPECT_EQ(usual.received, (std::vector<std::string>{"usual"}));
  EXPECT_EQ(named.received, (std::vector<std::string>{"named"}));
  EXPECT_EQ(high.received.size(), 2U);
}

TEST_F(SimUdpPortsTest, a_host_may_have_one_port_as_it_is) {
  SinkProtocol& served = echo(udp(1, {.here = {}, .only = 111, .any_peer = true}));
  auto& high = net[0].add<SinkProtocol>();
  push(open(udp(0, {.here = 0, .any_peer = true}), high, 111), "at 111");
  net.world.run_for(1ms);
  EXPECT_EQ(served.received, (std::vector<std::string>{"at 111"}));
  EXPECT_EQ(high.received.size(), 1U);
}

TEST_F(SimUdpPortsTest, a_port_that_peers_cannot_have_is_an_error_of_open) {
  SimUdp& client = udp(0, {});
  auto& high = net[0].add<SinkProtocol>();
  ParticipantSet to = net.to(1);
  to.remote.port = 30'000;
  const Shepherd inside(net[0].monitor());
  EXPECT_EQ(client.open(high, to).code(), Errc::invalid_argument);
}

TEST_F(SimUdpPortsTest, a_datagram_with_flipped_bits_is_dropped) {
  SimUdp& server = udp(1, {});
  SinkProtocol& served = echo(server);
  auto& high = net[0].add<SinkProtocol>();
  const SessionRef session = open(udp(0, {}), high);
  net.world.set_links({.corrupt = 1});
  for (int i = 0; i < 200; ++i) push(session, "as it was sent");
  net.world.run_for(1ms);
  EXPECT_GE(net.world.counters().corrupted, 200U);
  // In these, the same bit was flipped twice.
  for (const std::string& text : served.received) EXPECT_EQ(text, "as it was sent");
  EXPECT_GE(statistics(server).malformed, 180U);
}

std::string graph_errors_of(std::string_view graph) {
  const Result<GraphDescription> parsed = GraphDescription::parse(graph, simulated_kinds());
  return parsed ? "" : parsed.error().text;
}

TEST(UdpGraphTest, what_does_not_tell_ports_apart_cannot_stand_on_peers_at_any_port) {
  for (const std::string_view kind : {"FRAGMENT", "CHANNEL", "M_RPC"}) {
    const std::string errors =
        graph_errors_of("udp = UDP(peer_ports = any);\ntop = " + std::string(kind) + " over udp;");
    EXPECT_TRUE(errors.starts_with("2: 'udp' has peers at any port, and " + std::string(kind))) << errors;
  }
  // A layer without a header does not change this.
  const std::string errors = graph_errors_of("udp = UDP(peer_ports = any); t = TRACE over udp;\ntop = CHANNEL over t;");
  EXPECT_TRUE(errors.starts_with("2: 't' has peers at any port")) << errors;
}

TEST(UdpGraphTest, whatever_stands_on_udp_stands_on_ports_that_are_the_same_everywhere) {
  EXPECT_EQ(graph_errors_of("udp = UDP; f = FRAGMENT over udp; c = CHANNEL over f;"), "");
  EXPECT_EQ(graph_errors_of("udp = UDP(peer_ports = fixed, local_ports = 0); f = FRAGMENT over udp;"), "");
}

/// Not even to the peer's own port: the session is found by its host alone.
TEST(UdpGraphTest, who_does_not_tell_ports_apart_opens_to_none) {
  for (const auto& [number, text] : std::vector<std::pair<ProtocolNumber, std::string>>{
           {protocol_numbers::kFragment, "FRAGMENT over udp;"},
           {protocol_numbers::kChannel, "CHANNEL over udp;"},
           {protocol_numbers::kMonolithic, "M_RPC over udp;"},
           {protocol_numbers::kChannel, "CHANNEL over udp; top = RELIABLE_DATAGRAM over channel;"}}) {
    SimHosts net(2);
    const ProtocolKinds kinds = simulated_kinds();
    const Result<GraphDescription> parsed = GraphDescription::parse("udp = UDP; channel = " + text, kinds);
    ASSERT_TRUE(parsed) << parsed.error().text;
    const Result<Graph> graph = Graph::compose(net[0].host(), *parsed, kinds);
    ASSERT_TRUE(graph) << graph.error().text;
    SinkProtocol high(net[0].host());
    const Shepherd inside(net[0].monitor());
    Protocol& top = *graph->protocols().back();
    ParticipantSet to = net.to(1);
    to.remote.port = static_cast<std::uint16_t>(UdpPorts{}.peers + number);
    EXPECT_EQ(top.open(high, to).code(), Errc::invalid_argument) << text;
    to.remote.port = 0;
    EXPECT_TRUE(top.open(high, to)) << text;
  }
}

TEST(UdpGraphTest, a_description_says_which_instances_have_peers_at_any_port) {
  const Result<GraphDescription> parsed = GraphDescription::parse(
      "a = UDP(peer_ports = any); b = NULL over a; c = UDP; d = NULL over c;", simulated_kinds());
  ASSERT_TRUE(parsed) << parsed.error().text;
  std::vector<bool> many;
  for (const InstanceDescription& instance : parsed->instances()) many.push_back(instance.many_ports);
  EXPECT_EQ(many, (std::vector<bool>{true, true, false, false}));
}

TEST(UdpGraphTest, wrong_ports_are_errors) {
  SimHosts net(1);
  const ProtocolKinds kinds = simulated_kinds();
  const auto error_of = [&](const std::string& options) {
    const Result<GraphDescription> parsed = GraphDescription::parse("udp = UDP(" + options + ");", kinds);
    return parsed ? Graph::compose(net[0].host(), *parsed, kinds).error().text : parsed.error().text;
  };
  EXPECT_EQ(error_of("peer_ports = all"), "1: udp: peer_ports is 'all', write fixed or any");
  EXPECT_EQ(error_of("local_port = 111, local_ports = 0"), "1: udp: local_ports and local_port exclude each other");
  for (const std::string port : {"65536", "0"})
    EXPECT_EQ(error_of("local_port = " + port),
              "1: '" + port + "' is out of range for the option 'local_port' of UDP, write 1 to 65535");
}

}  // namespace
}  // namespace lrpc::netrpc
