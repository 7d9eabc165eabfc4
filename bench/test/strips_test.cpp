#include "report/strips.h"

#include <gtest/gtest.h>

#include <cmath>

#include "count_of.h"

namespace lrpc::bench {
namespace {

TEST(Strips, a_square_for_each_window_with_calls) {
  const std::string svg = strips_svg("title", {{"a & b", {100, std::nan(""), 100}}, {"", {1'000}}}, 100);
  EXPECT_EQ(count_of("<title>", svg), 3U);
  EXPECT_EQ(count_of("a &amp; b", svg), 1U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Strips, green_where_it_is_good_red_where_it_takes_a_hundred_times_as_long) {
  const auto colour = [](double time) {
    const std::string svg = strips_svg("", {{"", {time}}}, 100);
    const std::size_t at = svg.find("hsl(");
    return std::stoi(svg.substr(at + 4));
  };
  EXPECT_EQ(colour(50), 120);
  EXPECT_EQ(colour(100), 120);
  EXPECT_EQ(colour(1'000), 60);
  EXPECT_EQ(colour(10'000), 0);
  EXPECT_EQ(colour(1e9), 0);
}

}  // namespace
}  // namespace lrpc::bench
