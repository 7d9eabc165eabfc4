#include "report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lrpc::bench {
namespace {

TEST(Statistics, median_of_an_odd_number_of_samples_is_the_middle_one) {
  EXPECT_EQ(median(std::vector<double>{9, 1, 5}), 5);
}

TEST(Statistics, median_of_an_even_number_of_samples_is_the_mean_of_the_two_middle_ones) {
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 100}), 3.5);
}

TEST(Statistics, median_and_quantile_of_nothing_are_not_a_number) {
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
}

TEST(Statistics, quantile_takes_the_nearest_rank) {
  std::vector<double> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  EXPECT_EQ(quantile(samples, 0.99), 99);
  EXPECT_EQ(quantile(samples, 0.5), 50);
  EXPECT_EQ(quantile(samples, 0), 1);
  EXPECT_EQ(quantile(samples, 1), 100);
}

TEST(Statistics, quantile_of_one_sample_is_that_sample) { EXPECT_EQ(quantile(std::vector<double>{7}, 0.99), 7); }

TEST(Statistics, a_call_block_is_paired_with_the_mean_of_the_floor_blocks_around_it) {
  const std::vector<double> floor{100, 200, 400};
  const std::vector<double> call{300, 300};
  EXPECT_EQ(paired_ratios(floor, call), (std::vector<double>{2, 1}));
  EXPECT_EQ(paired_differences(floor, call), (std::vector<double>{150, 0}));
}

TEST(Statistics, the_paired_ratio_does_not_see_a_drift_that_both_share) {
  // The machine becomes three times slower half-way. The ratio of the medians would be wrong; the median of the ratios
  // is not.
  const std::vector<double> floor{10, 10, 10, 30, 30, 30};
  const std::vector<double> call{12, 12, 24, 36, 36};
  EXPECT_DOUBLE_EQ(median(paired_ratios(floor, call)), 1.2);
}

}  // namespace
}  // namespace lrpc::bench
