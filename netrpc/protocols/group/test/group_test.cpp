// GROUP in a graph: one name for several hosts, and calls that go to all of them.
#include "netrpc/protocols/group/group.h"

#include <gtest/gtest.h>

#include "lrpc/netrpc/all_kinds.h"
#include "netrpc/composite/test/several.h"
#include "netrpc/test_support/asked.h"

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;
using composite::GroupOutcome;

constexpr std::string_view kGraph =
    "udp = UDP; calls = COMPOSITE { GRPC; SYNC; ALL_ACCEPT; } over udp; select = SELECT over calls;"
    "both = GROUP(members = [10.0.0.2, 10.0.0.3]) over select; one = GROUP(members = [10.0.0.3]) over select;";

std::unique_ptr<Graph> compose(SimHost& machine, std::string_view text, std::string& error) {
  ProtocolKinds kinds = layer_kinds();
  kinds.add(sim_udp_kind("UDP"));
  const auto parsed = GraphDescription::parse(text, kinds);
  if (!parsed) return error = parsed.error().text, nullptr;
  const Shepherd inside(machine.monitor());
  auto graph = Graph::compose(machine.host(), *parsed, kinds);
  if (!graph) return error = graph.error().text, nullptr;
  return std::make_unique<Graph>(*std::move(graph));
}

TEST(Group, members_are_checked_when_it_is_made) {
  SimHosts net(1);
  const auto error_of = [&](const std::string& members) {
    std::string error;
    const std::string text = "udp = UDP; calls = COMPOSITE { GRPC; SYNC; ONE_ACCEPT; } over udp; g = GROUP(members = ";
    auto graph = compose(net[0], text + members + ") over calls;", error);
    const Shepherd inside(net[0].monitor());
    graph.reset();
    return error;
  };
  EXPECT_EQ(error_of("[10.0.0.1, 10.0.0.2]"), "");
  EXPECT_NE(error_of("[]").find("a group needs members"), std::string::npos);
  EXPECT_NE(error_of("[here]").find("'here' is no IPv4 address"), std::string::npos);
  EXPECT_NE(error_of("[10.0.0.1, 10.0.0.1]").find("is there twice"), std::string::npos);
  EXPECT_NE(error_of("[224.0.0.1]").find("no host that can belong to a group"), std::string::npos);
  EXPECT_NE(error_of("10.0.0.1").find("write a list"), std::string::npos);
}

TEST(Group, a_call_through_it_goes_to_its_members) {
  SimHosts net(3);
  std::vector<std::unique_ptr<Graph>> graphs;
  std::vector<composite::Server*> servers;
  std::string error;
  ParticipantSet command;
  command.local.command = command.remote.command = 7;
  for (std::size_t i = 0; i < 3; ++i) {
    graphs.push_back(compose(net[i], kGraph, error));
    ASSERT_NE(graphs.back(), nullptr) << error;
    servers.push_back(&net[i].add<composite::Server>());
    const Shepherd inside(net[i].monitor());
    // Two groups over one SELECT: enabling through either of them enables the server once.
    EXPECT_TRUE(graphs[i]->find("both")->open_enable(*servers[i], command));
    EXPECT_TRUE(graphs[i]->find("one")->open_enable(*servers[i], command));
  }
  const auto call = [&](std::string_view through, GroupOutcome& outcome) {
    const Shepherd inside(net[0].monitor());
    const auto members = test::asked<control::Members>(*graphs[0]->find(through));
    EXPECT_EQ(members.hosts.size(), through == "both" ? 2U : 1U);
    EXPECT_TRUE(Groups::is_group(members.group));
    const auto session = graphs[0]->find(through)->open(*servers[0], command);
    ASSERT_TRUE(session);
    (*session)->call(net.message(0, "hello"), outcome, kNoLimit);
  };
  GroupOutcome both;
  call("both", both);
  GroupOutcome one;
  call("one", one);
  net.world.run_for(1s);
  EXPECT_EQ(both.said,
            (std::map<std::string, std::string>{{"10.0.0.2", "10.0.0.2: hello"}, {"10.0.0.3", "10.0.0.3: hello"}}));
  EXPECT_EQ(one.said, (std::map<std::string, std::string>{{"10.0.0.3", "10.0.0.3: hello"}}));
  for (std::size_t i = 0; i < 3; ++i) {
    const Shepherd inside(net[i].monitor());
    graphs[i].reset();
  }
}

}  // namespace
}  // namespace lrpc::netrpc
