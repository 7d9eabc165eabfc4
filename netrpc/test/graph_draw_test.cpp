// Pictures of graphs, compared with golden/. Run this program with LRPC_GOLDEN_UPDATE=1 to regenerate those files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph_kinds.h"
#include "netrpc/graph/check.h"

namespace lrpc::netrpc {
namespace {

GraphDescription description_of(std::string_view text) {
  Result<GraphDescription> parsed = test::parse(text);
  EXPECT_TRUE(parsed) << parsed.error().text;
  return parsed ? std::move(parsed).value() : GraphDescription();
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LRPC_GOLDEN_DIR) + "/" + name;
  if (std::getenv("LRPC_GOLDEN_UPDATE") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, read(path)) << path;
}

constexpr std::string_view kCrossing = R"(
a = ETH(interface = "<&\">"); b = IP; c = IP; d = IP;
va = VIPADDR over b, a; vb = VIPADDR over a, d; vc = VIP over a, b, c, d;
f1 = FRAGMENT(linger = 100ms) over va; f2 = FRAGMENT over vb; vs = VIPSIZE over vc, f1;
c1 = CHANNEL over f2; c2 = CHANNEL over vs; c3 = CHANNEL over a;
a_name_that_is_much_too_long_to_be_shown = SELECT over c1;
)";

TEST(GraphPicture, the_papers_figure_looks_like_this) {
  expect_golden("figure3b.txt", description_of(test::kFigure3b).draw_text());
  expect_golden("figure3b.svg", description_of(test::kFigure3b).draw_svg());
}

TEST(GraphPicture, lines_that_cross_are_told_from_lines_that_join) {
  expect_golden("crossing.txt", description_of(kCrossing).draw_text());
  expect_golden("crossing.svg", description_of(kCrossing).draw_svg());
}

TEST(GraphPicture, one_box_is_a_picture) {
  EXPECT_EQ(description_of("ip = IP;").draw_text(), "+----+\n| IP |\n+----+\n");
}

TEST(GraphPicture, what_is_too_large_to_draw_is_listed) {
  // Each line crosses all layers between: the picture would have millions of cells.
  std::string text = "base = IP;\nl0 = VIP over base;\n";
  for (int i = 1; i < 900; ++i) text += "l" + std::to_string(i) + " = VIP over base, l" + std::to_string(i - 1) + ";\n";
  const GraphDescription description = description_of(text);
  EXPECT_EQ(description.draw_text().substr(0, 29), "base = IP\nl0 = VIP over base\n");
  EXPECT_EQ(description.draw_svg(), "");
}

TEST(GraphPicture, wide_and_deep_graphs_are_drawn) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "i" + std::to_string(i) + " = IP;\n";
  text += "v = VIP over i0";
  for (int i = 1; i < 40; ++i) text += ", i" + std::to_string(i);
  text += ";\n";
  for (int i = 0; i < 40; ++i) text += "f" + std::to_string(i) + " = FRAGMENT over v;\n";
  const std::string picture = description_of(text).draw_text();
  for (int i = 0; i < 40; ++i) EXPECT_NE(picture.find("f" + std::to_string(i) + ": FRAGMENT"), std::string::npos) << i;
}

class GraphCheck : public ::testing::Test {
 protected:
  GraphCheck() { std::filesystem::create_directory(directory_); }
  ~GraphCheck() override { std::filesystem::remove_all(directory_); }
  std::string file(std::string_view text) {
    std::string path = (directory_ / "graph").string();
    std::ofstream(path) << text;
    return path;
  }
  int check(const std::string& path, GraphPicture picture = GraphPicture::none) {
    std::ostringstream out;
    const int status = check_graph_file(path, test::unlogged_kinds(), out, picture);
    out_ = out.str();
    return status;
  }
  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("lrpc-graph-check-" + std::to_string(getpid()));
  std::string out_;
};

TEST_F(GraphCheck, a_right_graph_is_all_right_and_shown) {
  const std::string path = file(test::kFigure3b);
  EXPECT_EQ(check(path), 0);
  EXPECT_EQ(out_, path + ": 7 protocols, all right\n");
  EXPECT_EQ(check(path, GraphPicture::text), 0);
  EXPECT_EQ(out_, description_of(test::kFigure3b).draw_text());
  EXPECT_EQ(check(path, GraphPicture::svg), 0);
  EXPECT_EQ(out_, description_of(test::kFigure3b).draw_svg());
}

TEST_F(GraphCheck, errors_name_file_and_line) {
  const std::string path = file("ip = IP;\nf = FRAGMENT over pi;\nip = IP(x = 1);\n");
  EXPECT_EQ(check(path, GraphPicture::text), 1);
  EXPECT_EQ(out_, path + ":2: there is no protocol 'pi', define it above this line\n" + path +
                      ":3: 'ip' is defined in line 1 already, choose another name\n" + path +
                      ":3: IP has no option 'x', it has none at all\n");
}

TEST_F(GraphCheck, rules_of_a_program_are_checked_after_those_of_the_language) {
  const std::string path = file(test::kFigure3b);
  const GraphRules rules = [](const GraphDescription& graph) -> Status {
    return Error{Errc::invalid_argument, std::to_string(graph.instances().front().line) + ": is not wanted"};
  };
  std::ostringstream out;
  EXPECT_EQ(check_graph_file(path, test::unlogged_kinds(), out, GraphPicture::text, rules), 1);
  EXPECT_EQ(out.str(), path + ":" + std::to_string(description_of(test::kFigure3b).instances().front().line) +
                           ": is not wanted\n");
  const std::string wrong = file("ip = IPP;\n");
  out.str({});
  EXPECT_EQ(check_graph_file(wrong, test::unlogged_kinds(), out, GraphPicture::none, rules), 1);
  EXPECT_EQ(out.str().find("is not wanted"), std::string::npos) << out.str();
}

TEST_F(GraphCheck, files_that_are_none_or_too_large_are_errors) {
  EXPECT_EQ(check((directory_ / "missing").string()), 1);
  EXPECT_NE(out_.find("No such file"), std::string::npos) << out_;
  EXPECT_EQ(check(directory_.string()), 1);
  EXPECT_EQ(out_, directory_.string() + ": is a directory, name a file\n");
  const std::string path = file(std::string(70000, '#'));
  EXPECT_EQ(check(path), 1);
  EXPECT_EQ(out_, path + ": a description has at most 65536 bytes, take some out\n");
}

}  // namespace
}  // namespace lrpc::netrpc
