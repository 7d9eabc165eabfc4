// Composite protocols in the language of graphs: errors and their positions, the drawing, and that the graphs work.
#include "netrpc/composite/kind.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/test/two.h"
#include "netrpc/graph/options.h"
#include "netrpc/sim/devices.h"

namespace lrpc::netrpc::composite {
namespace {

constexpr EventName<int> kSuspected{"Suspected"};

ProtocolKinds kinds_for(SimHost* machine, std::vector<std::string>& made) {
  const auto notes = [&made](MicroParts& parts) { made.push_back(std::to_string(parts.options.number("most", 7))); };
  MicroKind watch = exporting(kind_of("WATCH", kInsertion, notes), {kSuspected.name});
  watch.options = {{"most", OptionType::number, "how many"}, {"wait", OptionType::duration, "how long", true}};
  MicroKind group = kind_of("GROUP", {kSuspected.name, kMessageInsertedIntoBag.name}, notes);
  group.needs = {{"WATCH"}};
  MicroKind alone = kind_of("ALONE", {}, notes);
  alone.excludes = {"GROUP"};
  ProtocolKinds kinds;
  kinds.add(composite_kind("COMPOSITE", {watch, group, alone}));
  ProtocolKind ip;
  ip.name = "IP";
  ip.make = [machine](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    return std::unique_ptr<Protocol>(std::make_unique<SimIp>(*machine, parts.name));
  };
  kinds.add(std::move(ip));
  return kinds;
}

std::string errors_of(std::string_view text) {
  std::vector<std::string> made;
  const auto parsed = GraphDescription::parse(text, kinds_for(nullptr, made));
  return parsed ? std::string() : parsed.error().text;
}

TEST(CompositeKind, compositions_are_checked_with_the_graph) {
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE { WATCH(wait = 1s); GROUP; } over ip;"), "");
  EXPECT_EQ(errors_of("ip = IP;\ncp = COMPOSITE {\n  GROUP;\n  ALONE;\n} over ip;"),
            "3: GROUP imports 'Suspected', which nobody exports, add a micro-protocol that does, or take GROUP out\n"
            "3: GROUP needs WATCH, add it\n"
            "4: ALONE and GROUP exclude each other, take one out");
  EXPECT_EQ(errors_of("ip = IP;\ncp = COMPOSITE {\n  WATCH(most = x,\n  least = 1);\n  WACH;\n} over ip;"),
            "3: 'x' is no value for the option 'most' of WATCH, write a number such as 8 or 0xa700\n"
            "3: WATCH needs the option 'wait' (how long), write WATCH(wait = ...)\n"
            "4: WATCH has no option 'least', it has most, wait\n"
            "5: there is no micro-protocol 'WACH' (did you mean 'WATCH'?), use one of WATCH, GROUP, ALONE");
  EXPECT_EQ(errors_of("ip = IP { ALONE; };"), "1: IP has no micro-protocols, take the braces out");
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE over ip;"),
            "1: COMPOSITE is made of micro-protocols, write COMPOSITE { ...; }");
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE { ALONE } over ip; after = IP;"),
            "1: found '}' after ALONE, put a ';' there");
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE { ALONE; = ; ALONE; } over ip; after = AP;"),
            "1: found '=' where the name of a micro-protocol should be, write NAME(option = value, "
            "...);\n1: there is no kind of protocol 'AP' (did you mean 'IP'?), use one of COMPOSITE, IP");
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE { ALONE;"),
            "1: found the end of the description where the name of a micro-protocol should be, write "
            "NAME(option = value, ...);");
  std::string many = "ip = IP; cp = COMPOSITE {";
  for (int i = 0; i < 65; ++i) many += " ALONE;";
  EXPECT_EQ(errors_of(many + "} over ip;"), "1: 65 micro-protocols in 'cp', use at most 64");
}

/// A value of the option that lies `by` beyond one of its bounds.
std::string beside(const OptionDescription& option, std::string_view bound, int by) {
  if (option.type == OptionType::number) return std::to_string(parse_number(bound).value() + std::uint64_t(by));
  return std::to_string((parse_duration(bound).value() + Duration(by)).count()) + "ns";
}

TEST(CompositeKind, an_option_out_of_its_range_is_refused_with_its_name_and_its_range) {
  ProtocolKinds kinds;
  kinds.add(composite_kind("COMPOSITE", suite_kinds()));
  kinds.add({.name = "IP"});
  SimHosts net(1);
  const Shepherd inside(net[0].monitor());
  std::size_t ranges = 0;
  for (const MicroKind& kind : suite_kinds()) {
    for (const OptionDescription& option : kind.options) {
      const auto refusal = [&](const std::string& value, bool fits) {
        const std::string name(option.name);
        const std::string wrong = "'" + value + "' is out of range for the option '" + name + "' of " + kind.name +
                                  ", write " + describe_range(option);
        const std::string text =
            "ip = IP; cp = COMPOSITE { " + kind.name + "(" + name + " = " + value + "); } over ip;";
        const auto parsed = GraphDescription::parse(text, kinds);
        EXPECT_NE(!parsed && parsed.error().text.find("1: " + wrong) != std::string::npos, fits) << text;
        // Made directly, without a graph. Other errors of this composition do not matter here.
        MicroKind alone = kind_of(kind.name, {}, [](MicroParts&) {});
        alone.options = kind.options;
        Part part{alone};
        part.options.set(name, value);
        const auto made = Framework::make(net[0].host(), "cp", net[0].ip(), {part});
        EXPECT_EQ(made ? "" : made.error().text, fits ? "" : "cp: " + wrong);
      };
      for (const std::string_view bound : {option.least, option.most}) {
        if (bound.empty()) continue;
        ++ranges;
        refusal(std::string(bound), true);
        refusal(beside(option, bound, bound == option.least ? -1 : 1), false);
      }
    }
  }
  EXPECT_GT(ranges, 20U);
  EXPECT_EQ(errors_of("ip = IP; cp = COMPOSITE(threads = 65) { ALONE; } over ip;"),
            "1: '65' is out of range for the option 'threads' of COMPOSITE, write 0 to 64");
}

TEST(CompositeKind, a_picture_shows_the_inside) {
  std::vector<std::string> made;
  const auto parsed = GraphDescription::parse("ip = IP; cp = COMPOSITE { WATCH(most = 3, wait = 1s); GROUP; } over ip;",
                                              kinds_for(nullptr, made));
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->draw_text(),
            "+-------------------------------------------+\n"
            "|               cp: COMPOSITE               |\n"
            "|        WATCH(most = 3, wait = 1s)         |\n"
            "|                   GROUP                   |\n"
            "| Message_Inserted_Into_Bag -> WATCH, GROUP |\n"
            "|         Suspected: WATCH -> GROUP         |\n"
            "+-------------------------------------------+\n"
            "                      |\n"
            "                   +----+\n"
            "                   | IP |\n"
            "                   +----+\n");
  // The SVG drawing has the same lines, in one box.
  std::string lines;
  const std::string svg = parsed->draw_svg();
  for (std::size_t at = svg.find("<text"); at != svg.npos; at = svg.find("<text", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    lines += svg.substr(begin, svg.find('<', begin) - begin) + '\n';
  }
  EXPECT_EQ(lines,
            "IP\n"
            "cp: COMPOSITE\n"
            "WATCH(most = 3, wait = 1s)\n"
            "GROUP\n"
            "Message_Inserted_Into_Bag -&gt; WATCH, GROUP\n"
            "Suspected: WATCH -&gt; GROUP\n");
}

TEST(CompositeKind, a_composition_from_the_graph_s_text_passes_messages) {
  SimHosts net(2);
  std::vector<std::string> made;
  std::vector<Graph> graphs;
  SinkProtocol* sink[2] = {};
  for (std::size_t i = 0; i < 2; ++i) {
    const ProtocolKinds kinds = kinds_for(&net[i], made);
    const auto parsed =
        GraphDescription::parse("ip = IP; cp = COMPOSITE { WATCH(most = 0x10, wait = 1s); ALONE; } over ip;", kinds);
    ASSERT_TRUE(parsed) << parsed.error().message();
    auto graph = Graph::compose(net[i].host(), *parsed, kinds);
    ASSERT_TRUE(graph) << graph.error().message();
    graphs.push_back(std::move(graph).value());
    sink[i] = &net[i].add<SinkProtocol>();
    const Shepherd inside(net[i].monitor());
    ASSERT_TRUE(graphs[i].find("cp")->open_enable(*sink[i], SimHosts::anyone()));
  }
  EXPECT_EQ(made, (std::vector<std::string>{"16", "7", "16", "7"}));
  {
    const Shepherd inside(net[0].monitor());
    const SessionRef session = *graphs[0].find("cp")->open(*sink[0], net.to(1));
    EXPECT_EQ(session->push(net.message(0, "hello")), Errc::ok);
  }
  net.world.run_for(std::chrono::milliseconds(1));
  EXPECT_EQ(sink[1]->received, std::vector<std::string>{"hello"});
  for (SinkProtocol* const one : sink) one->sessions.clear();
}

}  // namespace
}  // namespace lrpc::netrpc::composite
