#include "report/histogram.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lrpc::bench {
namespace {

TEST(Histogram, an_empty_one_has_no_mean_and_no_quantiles) {
  const Histogram histogram;
  EXPECT_TRUE(std::isnan(histogram.mean()));
  EXPECT_TRUE(std::isnan(histogram.quantile(0.5)));
}

TEST(Histogram, small_values_are_exact) {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  EXPECT_EQ(histogram.quantile(0.5), 50);
  EXPECT_EQ(histogram.quantile(0.99), 99);
  EXPECT_EQ(histogram.quantile(0), 1);
  EXPECT_EQ(histogram.quantile(1), 100);
}

TEST(Histogram, large_values_are_off_by_less_than_half_a_per_cent) {
  for (std::uint64_t value = 200; value < 1'000'000'000'000; value += value * 37 / 100) {
    Histogram histogram;
    histogram.add(value);
    histogram.add(std::uint64_t{1} << 62);  // so that the maximum does not cap the quantile
    EXPECT_NEAR(histogram.quantile(0.5) / static_cast<double>(value), 1, 0.005) << value;
  }
}

TEST(Histogram, the_mean_and_the_largest_value_are_exact) {
  Histogram histogram;
  histogram.add(1'000'003);
  histogram.add(1'000'000'001);
  EXPECT_EQ(histogram.mean(), 500'500'002);
  EXPECT_EQ(histogram.max(), 1'000'000'001U);
  EXPECT_EQ(histogram.count(), 2U);
}

TEST(Histogram, no_quantile_exceeds_the_largest_value) {
  Histogram histogram;
  histogram.add(1'000'001);
  EXPECT_LE(histogram.quantile(1), 1'000'001);
}

TEST(Histogram, values_beyond_the_last_bucket_are_counted_in_it) {
  Histogram histogram;
  histogram.add(~std::uint64_t{0});
  EXPECT_EQ(histogram.count(), 1U);
  EXPECT_GT(histogram.quantile(0.5), 1e14);
}

TEST(Histogram, two_add_up) {
  Histogram one;
  Histogram other;
  one.add(10);
  other.add(30);
  other.add(20);
  one.add(other);
  EXPECT_EQ(one.count(), 3U);
  EXPECT_EQ(one.mean(), 20);
  EXPECT_EQ(one.quantile(0.5), 20);
  EXPECT_EQ(one.max(), 30U);
}

}  // namespace
}  // namespace lrpc::bench
