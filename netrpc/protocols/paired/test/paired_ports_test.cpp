// PAIRED over UDP: several programs of one host, distinguished by their ports.
#include <gtest/gtest.h>

#include "netrpc/protocols/paired/paired.h"
#include "netrpc/sim/storm_stacks.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

/// Two programs on each of two hosts, each with its own port.
TEST(PairedPortsTest, many_programs_of_one_host_call_a_server_each_as_a_peer_of_its_own) {
  constexpr std::uint16_t kCalled = 7;
  SimHosts net(3);
  const ProtocolKinds kinds = simulated_kinds();
  const auto compose = [&](std::size_t host, std::string_view text) -> Protocol& {
    const Result<GraphDescription> parsed = GraphDescription::parse(text, kinds);
    EXPECT_TRUE(parsed) << parsed.error().text;
    Result<Graph> graph = Graph::compose(net[host].host(), *parsed, kinds);
    EXPECT_TRUE(graph) << graph.error().text;
    auto kept = std::make_shared<Graph>(std::move(*graph));
    net[host].own(kept);
    return *kept->protocols().back();
  };
  Protocol& top = compose(0, "udp = UDP(peer_ports = any); paired = PAIRED over udp; select = SELECT over paired;");
  auto& server = net[0].add<SinkProtocol>();
  ParticipantSet anyone = SimHosts::anyone();
  anyone.local.command = kCalled;
  {
    const Shepherd inside(net[0].monitor());
    ASSERT_TRUE(top.open_enable(server, anyone));
  }
  TestCall calls[4];
  std::vector<SessionRef> sessions;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t host = 1 + i / 2;
    Protocol& client =
        compose(host, "udp = UDP(local_ports = 0); paired = PAIRED over udp; select = SELECT over paired;");
    ParticipantSet to = net.to(0);
    to.remote.command = kCalled;
    const Shepherd inside(net[host].monitor());
    Result<SessionRef> session = client.open(net[host].add<SinkProtocol>(), to);
    ASSERT_TRUE(session) << session.error().message();
    sessions.push_back(*session);
    sessions.back()->call(net.message(host, "program " + std::to_string(i)), calls[i], kNoLimit);
  }
  net.world.run_for(1s);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(calls[i].outcome, Errc::ok);
    EXPECT_EQ(calls[i].reply, "program " + std::to_string(i));
  }
  EXPECT_EQ(server.received.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const Shepherd inside(net[1 + i / 2].monitor());
    sessions[i] = {};
  }
}

/// Many servers on one host, which the client distinguishes by their ports.
TEST(PairedPortsTest, select_opens_channels_to_the_port_that_the_participant_names) {
  SimHosts net(2);
  const auto udp = [&](std::size_t host, const UdpPorts& ports) -> Protocol& {
    auto made = std::make_shared<SimUdp>(net[host], "udp", ports);
    net[host].own(made);
    return *made;
  };
  const auto stack = [&](std::size_t host, Protocol& below) -> Protocol& {
    auto paired = std::shared_ptr<Protocol>(paired_kind().make({net[host].host(), "paired", {&below}, {}}).value());
    net[host].own(paired);
    auto select = std::shared_ptr<Protocol>(
        simulated_kinds().find("SELECT")->make({net[host].host(), "select", {paired.get()}, {}}).value());
    net[host].own(select);
    return *select;
  };
  SinkProtocol* servers[2];
  for (std::uint32_t i = 0; i < 2; ++i) {
    servers[i] = &net[1].add<SinkProtocol>();
    const Shepherd inside(net[1].monitor());
    ASSERT_TRUE(
        stack(1, udp(1, {.here = 24'000 + i * 1000, .any_peer = true})).open_enable(*servers[i], SimHosts::anyone()));
  }
  auto& high = net[0].add<SinkProtocol>();
  Protocol& client = stack(0, udp(0, {.here = {}, .any_peer = true}));
  std::vector<SessionRef> sessions;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ParticipantSet to = net.to(1);
    to.remote.port = static_cast<std::uint16_t>(24'000 + i * 1000 + protocol_numbers::kPaired);
    TestCall call;
    {
      const Shepherd inside(net[0].monitor());
      Result<SessionRef> session = client.open(high, to);
      ASSERT_TRUE(session) << session.error().message();
      sessions.push_back(*session);
      sessions.back()->call(net.message(0, std::to_string(i)), call, kNoLimit);
    }
    net.world.run_for(1s);
    EXPECT_EQ(call.outcome, Errc::ok);
    EXPECT_EQ(servers[i]->received, (std::vector<std::string>{std::to_string(i)}));
  }
  const Shepherd inside(net[0].monitor());
  sessions.clear();
}

}  // namespace
}  // namespace lrpc::netrpc
