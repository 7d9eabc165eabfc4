#include <gtest/gtest.h>

#include <random>

#include "graph_kinds.h"
#include "length.h"
#include "lrpc/netrpc/all_kinds.h"

namespace lrpc::netrpc {
namespace {

std::string errors_of(std::string_view text) {
  const Result<GraphDescription> parsed = test::parse(text);
  if (parsed) return "";
  EXPECT_EQ(parsed.code(), Errc::invalid_argument);
  return parsed.error().text;
}

TEST(GraphParse, the_papers_figure_is_understood) {
  const Result<GraphDescription> parsed = test::parse(test::kFigure3b);
  ASSERT_TRUE(parsed) << parsed.error().text;
  const auto& instances = parsed.value().instances();
  ASSERT_EQ(instances.size(), 7U);
  EXPECT_EQ(instances[0].name, "eth");
  EXPECT_EQ(instances[0].kind, "ETH");
  EXPECT_EQ(instances[0].line, 2);
  EXPECT_EQ(instances[0].options.text("interface"), "veth0");
  EXPECT_EQ(instances[0].options.number("types", 0), 0xa700U);
  EXPECT_EQ(instances[4].below, (std::vector<std::string>{"vipaddr", "fragment"}));
  EXPECT_EQ(instances[4].gives, Service::datagram);
  EXPECT_EQ(instances[6].gives, Service::transaction);
}

TEST(GraphParse, spaces_lines_and_comments_do_not_matter) {
  const Result<GraphDescription> parsed =
      test::parse("e=ETH(interface=veth0)#one\r\n;\tv = VIP\n  over\n e,e # two\n;\n#three");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed.value().instances()[1].below.size(), 2U);
}

TEST(GraphParse, every_type_of_option_is_read) {
  const Result<GraphDescription> parsed = test::parse(R"(e = ETH(interface = "a \"b\" \\ # c;", types = 42);
    f = FRAGMENT(linger = 7ns) over e;
    t = TRACE(share = 0.25) over f;)");
  ASSERT_TRUE(parsed) << parsed.error().text;
  const auto& instances = parsed.value().instances();
  EXPECT_EQ(instances[0].options.text("interface"), "a \"b\" \\ # c;");
  EXPECT_EQ(instances[0].options.number("types", 0), 42U);
  EXPECT_EQ(instances[1].options.duration("linger", {}), Duration(7));
  EXPECT_DOUBLE_EQ(instances[2].options.rate("share", 0), 0.25);
  EXPECT_EQ(instances[2].options.number("absent", 5), 5U);
  EXPECT_EQ(instances[2].options.text("absent", "fallback"), "fallback");
  EXPECT_EQ(instances[2].options.duration("absent", Duration(9)), Duration(9));
  EXPECT_FALSE(instances[2].options.has("absent"));
}

TEST(GraphParse, lists_are_read_and_only_where_lists_belong) {
  ProtocolKinds kinds;
  kinds.add({.name = "L", .summary = "lists", .options = {{"l", OptionType::list, "a list"}, {"t", {}, "a text"}}});
  const auto list_of = [&](std::string_view text) -> std::vector<std::string> {
    const auto parsed = GraphDescription::parse(text, kinds);
    if (!parsed) return {parsed.error().text};
    return parsed->instances().front().options.list("l");
  };
  using Items = std::vector<std::string>;
  EXPECT_EQ(list_of("l = L(l = [10.0.0.1, \"b, c]\", d]);"), (Items{"10.0.0.1", "b, c]", "d"}));
  EXPECT_EQ(list_of("l = L(l = [], t = x);"), Items());
  EXPECT_EQ(list_of("l = L(l = [a,]);"), Items{"a"});
  EXPECT_EQ(list_of("l = L(t = x);"), Items());
  EXPECT_EQ(list_of("l = L(l = a);"),
            Items{"1: 'a' is no value for the option 'l' of L, write a list such as [10.0.0.1, 10.0.0.2]"});
  EXPECT_EQ(list_of("l = L(t = [a]);"), Items{"1: a list is no value for the option 't' of L, write a text"});
  EXPECT_EQ(list_of("l = L(l = [a b]);"), Items{"1: found 'b' in the list 'l', put a ',' or a ']' there"});
  EXPECT_EQ(list_of("l = L(l = [,]);"), Items{"1: found ',' in the list 'l', write l = [value, ...]"});
  EXPECT_EQ(list_of("l = L(l = [a, = ]);"), Items{"1: found '=' in the list 'l', write l = [value, ...]"});
  EXPECT_EQ(list_of("l = L(l = [a"),
            Items{"1: found the end of the description in the list 'l', put a ',' or a ']' there"});
  const auto shown = GraphDescription::parse("l = L(l = [a, b]);", kinds);
  ASSERT_TRUE(shown);
  EXPECT_NE(shown->draw_text().find("l = [a, b]"), std::string::npos);
}

TEST(GraphParse, durations_have_units_and_do_not_overflow) {
  Options options;
  const auto read = [&](std::string value) {
    options.set("d", std::move(value));
    return options.duration("d", Duration(-1));
  };
  EXPECT_EQ(read("10ms"), std::chrono::milliseconds(10));
  EXPECT_EQ(read("250us"), std::chrono::microseconds(250));
  EXPECT_EQ(read("5s"), std::chrono::seconds(5));
  EXPECT_EQ(read("0ns"), Duration(0));
  EXPECT_EQ(read("9223372036s"), std::chrono::seconds(9223372036));
  for (const char* wrong : {"5", "s", "", "-5s", "1.5s", "5 s", "5m", "5S", "9223372037s", "99999999999999999999ns"})
    EXPECT_EQ(read(wrong), Duration(-1)) << wrong;
}

TEST(GraphParse, a_transparent_kind_gives_what_it_stands_on) {
  const Result<GraphDescription> parsed = test::parse(R"(ip = IP; t1 = TRACE over ip; c = CHANNEL over t1;
    t2 = TRACE over c; t3 = TRACE over t2; s = SELECT over t3;)");
  ASSERT_TRUE(parsed) << parsed.error().text;
  EXPECT_EQ(parsed.value().instances()[1].gives, Service::datagram);
  EXPECT_EQ(parsed.value().instances()[4].gives, Service::transaction);
  EXPECT_EQ(errors_of("ip = IP; t = TRACE over ip; s = SELECT over t;"),
            "1: 't' delivers messages, but SELECT needs one that answers calls (the protocol for calls), use one of "
            "CHANNEL, SELECT");
}

TEST(GraphParse, what_nothing_uses_is_fine) {
  EXPECT_EQ(errors_of("ip = IP; e = ETH(interface = a); f = FRAGMENT over e;"), "");
}

struct Wrong {
  const char* text;
  const char* errors;
};

class GraphParseErrors : public ::testing::TestWithParam<Wrong> {};

TEST_P(GraphParseErrors, says_the_line_and_what_to_do) { EXPECT_EQ(errors_of(GetParam().text), GetParam().errors); }

constexpr Wrong kWrong[] = {
    {"", "1: the description defines no protocol, write name = KIND; at least once"},
    {"# nothing\n", "1: the description defines no protocol, write name = KIND; at least once"},
    {"ip = IP;\n\nc = CHANEL over ip;",
     "3: there is no kind of protocol 'CHANEL' (did you mean 'CHANNEL'?), use one of ETH, IP, VIPADDR, VIPSIZE, VIP, "
     "FRAGMENT, CHANNEL, SELECT, TRACE"},
    {"ip = ip;",
     "1: there is no kind of protocol 'ip' (did you mean 'IP'?), use one of ETH, IP, VIPADDR, VIPSIZE, VIP, FRAGMENT, "
     "CHANNEL, SELECT, TRACE"},
    {"x = QUANTUM;",
     "1: there is no kind of protocol 'QUANTUM', use one of ETH, IP, VIPADDR, VIPSIZE, VIP, FRAGMENT, CHANNEL, SELECT, "
     "TRACE"},
    {"ip = IP;\nip = IP;", "2: 'ip' is defined in line 1 already, choose another name"},
    {"f = FRAGMENT over g;\ng = IP;",
     "1: 'g' is not defined above this line but in line 2, move that line up (what stands below comes first, and "
     "nothing stands on itself)"},
    {"f = FRAGMENT over f;",
     "1: 'f' is not defined above this line but in line 1, move that line up (what stands below comes first, and "
     "nothing stands on itself)"},
    {"ip_one = IP;\nf = FRAGMENT over ip_on;",
     "2: there is no protocol 'ip_on' (did you mean 'ip_one'?), define it above this line"},
    {"f = FRAGMENT over nowhere;", "1: there is no protocol 'nowhere', define it above this line"},
    {"f = FRAGMENT;",
     "1: FRAGMENT stands on 1 protocol (the protocol for messages), not on 0, write over and one name"},
    {"i = IP; v = VIPSIZE over i;",
     "1: VIPSIZE stands on 2 protocols (the protocol for small messages; the protocol for large messages), not on 1, "
     "write over and 2 names in this order"},
    {"v = VIP;", "1: VIP stands on at least 1 protocol (the protocol for messages), not on 0, write over and one name"},
    {"i = IP; j = IP over i;", "1: IP stands on nothing, take 'over ...' out"},
    {"i = IP; c = CHANNEL over i; f = FRAGMENT over c;",
     "1: 'c' answers calls, but FRAGMENT needs one that delivers messages (the protocol for messages), use one of ETH, "
     "IP, VIPADDR, VIPSIZE, VIP, FRAGMENT"},
    {"e = ETH;", "1: ETH needs the option 'interface' (the network interface), write ETH(interface = ...)"},
    {"e = ETH(interfaces = a);",
     "1: ETH has no option 'interfaces' (did you mean 'interface'?), it has interface, types\n"
     "1: ETH needs the option 'interface' (the network interface), write ETH(interface = ...)"},
    {"i = IP(speed = 9);", "1: IP has no option 'speed', it has none at all"},
    {"e = ETH(interface = a, interface = b);", "1: the option 'interface' is given twice, take one out"},
    {"e = ETH(interface = a, types = many);",
     "1: 'many' is no value for the option 'types' of ETH, write a number such as 8 or 0xa700"},
    {"e = ETH(interface = a, types = 18446744073709551616);",
     "1: '18446744073709551616' is no value for the option 'types' of ETH, write a number such as 8 or 0xa700"},
    {"i = IP; f = FRAGMENT(linger = 5) over i;",
     "1: '5' is no value for the option 'linger' of FRAGMENT, write a duration with its unit such as 250us, 10ms or "
     "5s"},
    {"i = IP; f = FRAGMENT(linger = 31536001s) over i;",
     "1: '31536001s' is out of range for the option 'linger' of FRAGMENT, write at most 31536000s"},
    {"i = IP; t = TRACE(share = 1.5) over i;",
     "1: '1.5' is no value for the option 'share' of TRACE, write a rate from 0 to 1 such as 0.05"},
    {"i = IP; t = TRACE(share = nan) over i;",
     "1: 'nan' is no value for the option 'share' of TRACE, write a rate from 0 to 1 such as 0.05"},
    {"i = IP\nj = IP;", "1: found 'j' after the definition of 'i', end it with a ';'"},
    {"i = IP", "1: found the end of the description after the definition of 'i', end it with a ';'"},
    {"i IP;", "1: found 'IP' after 'i', put a '=' there"},
    {"= IP;",
     "1: found '=' where the name of a protocol should be, write name = KIND(option = value, ...) over lower, ...;"},
    {"i = IP;;",
     "1: found ';' where the name of a protocol should be, write name = KIND(option = value, ...) over lower, ...;"},
    {"9i = IP;", "1: '9i' cannot be the name of a protocol, use letters, digits, '_', '-' and '.', a letter first"},
    {"over = IP;", "1: 'over' stands where the name of a protocol should be, put a name there"},
    {"i = IP; f = FRAGMENT over ;",
     "1: found ';' where the name of a protocol below should be, write name = KIND(option = value, ...) over lower, "
     "...;"},
    {"e = ETH(interface);", "1: found ')' after the option 'interface', put a '=' there"},
    {"e = ETH(interface = );", "1: found ')' where the value of 'interface' should be, write interface = value"},
    {"e = ETH(interface = a types = 3);", "1: found 'types' among the options, put a ',' or a ')' there"},
    {"e = ETH(interface = \"a);\ni = IP;",
     "1: the quoted text does not end on its line, add a '\"'\n2: found 'i' among the options, put a ',' or a ')' "
     "there"},
    {"e = ETH(interface = \"a\x01\");", "1: a quoted text may have printable ASCII characters only, change the others"},
    {"i = IP; $$ \n\x7f j = IP;",
     "1: '$' has no meaning here, take it out or put the value in quotes\n"
     "2: the byte 0x7f has no meaning here, take it out or put the value in quotes"},
    {"a = NO;\nb = FRAGMENT over a, c;\nd = IP(x = 1);\nd = VIPSIZE over a, b;",
     "1: there is no kind of protocol 'NO', use one of ETH, IP, VIPADDR, VIPSIZE, VIP, FRAGMENT, "
     "CHANNEL, SELECT, TRACE\n"
     "2: FRAGMENT stands on 1 protocol (the protocol for messages), not on 2, write over and one name\n"
     "2: there is no protocol 'c', define it above this line\n"
     "3: IP has no option 'x', it has none at all\n"
     "4: 'd' is defined in line 3 already, choose another name"},
};
INSTANTIATE_TEST_SUITE_P(Wrong, GraphParseErrors, ::testing::ValuesIn(kWrong));

TEST(GraphParse, knows_through_which_instances_a_call_may_be_executed_several_times) {
  const auto parsed = GraphDescription::parse(
      "udp = UDP; pairs = REQUEST_REPLY over udp; call = SUN_CALL over pairs; seen = TRACE over call;"
      "sun = SUN_SELECT over seen; channel = CHANNEL over udp; once = SUN_CALL over channel;",
      all_kinds());
  ASSERT_TRUE(parsed) << parsed.error().message();
  std::vector<std::string> repeating;
  for (const InstanceDescription& instance : parsed->instances())
    if (instance.repeats) repeating.push_back(instance.name);
  EXPECT_EQ(repeating, (std::vector<std::string>{"pairs", "call", "seen", "sun"}));
}

TEST(GraphParse, a_hostile_description_is_bounded) {
  EXPECT_EQ(errors_of(std::string(GraphDescription::kMaxText + 1, ' ')),
            "1: the description has 65537 bytes, use at most 65536");
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "i" + std::to_string(i) + " = IP;\n";
  EXPECT_EQ(errors_of(many), "1001: more than 1000 protocols in one graph, take some out");
  std::string wide = "i = IP; v = VIP over i";
  for (int i = 0; i < 64; ++i) wide += ", i";
  EXPECT_EQ(errors_of(wide + ";"), "1: 'v' stands on 65 protocols, use at most 64");
  EXPECT_EQ(errors_of(std::string(300, 'a') + " = IP;").substr(0, 54),
            "1: a name or value of 300 characters is too long, use ");
  // The size of an error report is bounded, however long the file is.
  std::string wrong;
  for (int i = 0; i < 900; ++i) wrong += "i = NOTHING over x;\n";
  const std::string report = errors_of(wrong);
  EXPECT_EQ(std::count(report.begin(), report.end(), '\n'), 50);
  EXPECT_NE(report.find("\nand 2649 more"), std::string::npos);
  EXPECT_LT(errors_of(std::string(60000, '$')).size(), 200U);
}

TEST(GraphParse, damaged_descriptions_are_refused_or_understood_but_never_more) {
  std::mt19937 random(7);  // NOLINT: the same every time
  const std::string good(test::kFigure3b);
  for (int round = 0; round < testing_lrpc::rounds(750); ++round) {
    std::string text = good;
    for (int i = 0; i < 1 + round % 5; ++i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text.erase(at, 1 + random() % 9); break;
        case 1: text.insert(at, 1, static_cast<char>(random())); break;
        case 2: text[at] = "=(),;\"#\n \\"[random() % 10]; break;
        default: text.insert(at, good.substr(random() % good.size(), random() % 40)); break;
      }
    }
    const Result<GraphDescription> parsed = test::parse(text);
    if (parsed) {
      EXPECT_FALSE(parsed.value().instances().empty());
    } else {
      EXPECT_FALSE(parsed.error().text.empty());
    }
  }
}

}  // namespace
}  // namespace lrpc::netrpc
