#include "report/svg_plot.h"

#include <gtest/gtest.h>

#include <limits>

#include "count_of.h"

namespace lrpc::bench {
namespace {

TEST(SvgPlot, a_line_goes_from_corner_to_corner_of_the_axes) {
  SvgPlot plot("t", {"x"}, {"y"});
  plot.add({"line", {{0, 0}, {5, 5}, {10, 10}}});
  EXPECT_NE(plot.str().find(R"(points="80.0,420.0 480.0,230.0 880.0,40.0")"), std::string::npos) << plot.str();
}

TEST(SvgPlot, a_logarithmic_axis_gives_each_decade_the_same_room) {
  SvgPlot plot("t", {"x"}, {"y", true});
  plot.add({"line", {{0, 1}, {1, 10}, {2, 100}}});
  EXPECT_NE(plot.str().find(R"(points="80.0,420.0 480.0,230.0 880.0,40.0")"), std::string::npos) << plot.str();
}

TEST(SvgPlot, what_an_axis_cannot_show_breaks_the_line) {
  SvgPlot plot("t", {"x"}, {"y", true});
  const double none = std::numeric_limits<double>::quiet_NaN();
  plot.add({"line", {{0, 1}, {1, 10}, {2, 0}, {3, 10}, {4, 10}, {5, none}, {6, 1}}});
  EXPECT_EQ(count_of(R"(stroke-width="1.5")", plot.str()), 3U);
}

TEST(SvgPlot, texts_are_escaped) {
  SvgPlot plot("a < b & \"c\"", {"<x>"}, {"y"});
  plot.add({"<script>", {{0, 0}, {1, 1}}});
  plot.mark(0.5, "x>y");
  const std::string svg = plot.str();
  EXPECT_NE(svg.find("a &lt; b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(svg.find("x&gt;y"), std::string::npos);
}

TEST(SvgPlot, an_empty_one_is_a_picture_too) {
  const std::string svg = SvgPlot("nothing", {"x", true}, {"y", true}).str();
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SvgPlot, dashed_lines_are_dashed) {
  SvgPlot plot("t", {"x"}, {"y"});
  plot.add({"line", {{0, 0}, {1, 1}}, true});
  EXPECT_EQ(count_of(R"(stroke-dasharray="6 4")", plot.str()), 1U);
}

TEST(SvgPlot, every_line_has_its_place_in_the_legend) {
  SvgPlot plot("t", {"x"}, {"y"});
  for (int i = 0; i < 4; ++i) plot.add({"line " + std::to_string(i), {{0, 0}, {1, 1}}});
  const std::string svg = plot.str();
  EXPECT_NE(svg.find(R"(<text x="80" y="480")"), std::string::npos);
  EXPECT_NE(svg.find(R"(<text x="620" y="480")"), std::string::npos);
  EXPECT_NE(svg.find(R"(<text x="80" y="498")"), std::string::npos) << svg;
}

TEST(SvgPlot, a_file_that_cannot_be_written_is_an_error) {
  EXPECT_FALSE(write_picture("/nonexistent/plot.svg", SvgPlot("t", {"x"}, {"y"}).str()));
}

TEST(AxisTicks, are_round_numbers_within_the_axis) {
  EXPECT_EQ(axis_ticks(0, 10, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(1, 4, false), (std::vector<double>{1, 1.5, 2, 2.5, 3, 3.5, 4}));
}

TEST(AxisTicks, of_many_decades_are_the_decades) {
  EXPECT_EQ(axis_ticks(1, 10'000, true), (std::vector<double>{1, 10, 100, 1000, 10'000}));
  EXPECT_EQ(axis_ticks(10, 100, true), (std::vector<double>{10, 20, 50, 100}));
}

TEST(AxisTicks, are_labelled_shortly) {
  EXPECT_EQ(tick_label(1'500'000), "1.5M");
  EXPECT_EQ(tick_label(2000), "2k");
  EXPECT_EQ(tick_label(0), "0");
  EXPECT_EQ(tick_label(0.25), "0.25");
}

}  // namespace
}  // namespace lrpc::bench
