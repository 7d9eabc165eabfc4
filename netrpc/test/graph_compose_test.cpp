#include <gtest/gtest.h>

#include "graph_kinds.h"

namespace lrpc::netrpc {
namespace {

class GraphCompose : public ::testing::Test {
 protected:
  Result<Graph> compose(std::string_view text) {
    const ProtocolKinds kinds = test::logged_kinds(log_);
    Result<GraphDescription> parsed = GraphDescription::parse(text, kinds);
    if (!parsed) return parsed.error();
    return Graph::compose(host_, parsed.value(), kinds);
  }

  std::vector<std::string> log_;
  test::ManualClock clock_;
  test::IdleEngine engine_;
  Host host_{{}, clock_, engine_};
};

TEST_F(GraphCompose, instances_are_made_bottom_up_and_found_by_name) {
  Result<Graph> graph = compose(test::kFigure3b);
  ASSERT_TRUE(graph) << graph.error().text;
  ASSERT_EQ(graph->protocols().size(), 7U);
  EXPECT_EQ(graph->protocols().front()->name(), "eth");
  EXPECT_EQ(graph->find("select"), graph->protocols().back().get());
  EXPECT_EQ(graph->find("nobody"), nullptr);
  EXPECT_FALSE(host_.monitor().held());
}

TEST_F(GraphCompose, higher_protocols_are_destroyed_first_and_inside_the_monitor) {
  { const Result<Graph> graph = compose("a = IP; b = FRAGMENT over a; c = CHANNEL over b;"); }
  EXPECT_EQ(log_, (std::vector<std::string>{"c inside", "b inside", "a inside"}));
  log_.clear();
  {
    const Shepherd inside(host_.monitor());
    { const Result<Graph> graph = compose("a = IP; b = FRAGMENT over a;"); }
    EXPECT_TRUE(host_.monitor().held());
  }
  EXPECT_EQ(log_, (std::vector<std::string>{"b inside", "a inside"}));
}

TEST_F(GraphCompose, assigning_a_graph_destroys_the_old_one_in_order) {
  Result<Graph> first = compose("a = IP; b = FRAGMENT over a;");
  Result<Graph> second = compose("c = IP;");
  *first = std::move(*second);
  EXPECT_EQ(log_, (std::vector<std::string>{"b inside", "a inside"}));
  EXPECT_NE(first->find("c"), nullptr);
  EXPECT_EQ(second->find("c"), nullptr);
}

TEST_F(GraphCompose, the_error_of_a_factory_names_the_line_and_the_instance) {
  const Result<Graph> graph =
      compose("ip = IP;\nf = FRAGMENT over ip;\neth = ETH(interface = none);\nc = CHANNEL over eth;");
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.code(), Errc::system_error);
  EXPECT_EQ(graph.error().text, "3: eth: no such interface");
  EXPECT_EQ(log_, (std::vector<std::string>{"f inside", "ip inside"}));
}

TEST_F(GraphCompose, factories_get_what_the_graph_names) {
  std::vector<std::string> below;
  std::string option;
  ProtocolKinds kinds = test::logged_kinds(log_);
  ProtocolKind vip = *kinds.find("VIPSIZE");
  vip.options.push_back({"limit", OptionType::number, "bytes; 1500", false});
  vip.make = [&](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    for (const Protocol* protocol : parts.below) below.push_back(protocol->name());
    option = parts.options.text("limit");
    return std::unique_ptr<Protocol>(std::make_unique<test::LoggedProtocol>(parts.host, parts.name, log_));
  };
  kinds.add(vip);  // replaces the kind of the same name
  EXPECT_EQ(kinds.all().size(), test::logged_kinds(log_).all().size());
  const Result<GraphDescription> parsed =
      GraphDescription::parse("a = IP; b = IP; v = VIPSIZE(limit = 12) over b, a;", kinds);
  ASSERT_TRUE(parsed) << parsed.error().text;
  const Result<Graph> graph = Graph::compose(host_, parsed.value(), kinds);
  ASSERT_TRUE(graph);
  EXPECT_EQ(below, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(option, "12");
}

TEST_F(GraphCompose, a_description_checked_with_other_kinds_is_an_error) {
  const Result<GraphDescription> parsed = GraphDescription::parse("ip = IP;", test::logged_kinds(log_));
  ASSERT_TRUE(parsed);
  const Result<Graph> graph = Graph::compose(host_, parsed.value(), ProtocolKinds());
  EXPECT_EQ(graph.error().text, "1: ip: there is no kind of protocol IP to compose with");
}

}  // namespace
}  // namespace lrpc::netrpc
