#include "core/readapt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lrpc::bench {
namespace {

std::optional<std::uint64_t> calls(const std::vector<double>& windows) { return calls_to_readapt({windows, 50}); }

TEST(Readapt, the_steady_state_is_that_of_the_second_half) {
  const std::vector<double> windows{900, 900, 900, 100, 101, 99};
  EXPECT_EQ(steady_state({windows, 50}), 100);
}

TEST(Readapt, what_is_steady_from_the_start_took_no_calls) {
  EXPECT_EQ(calls({100, 100, 100, 100, 100, 100, 100, 100, 100, 100}), 0U);
}

TEST(Readapt, the_calls_before_it_settles_are_counted) {
  EXPECT_EQ(calls({900, 800, 700, 100, 100, 100, 100, 100, 100, 100, 100, 100}), 150U);
}

TEST(Readapt, one_good_window_among_bad_ones_is_not_settled) {
  EXPECT_EQ(calls({900, 100, 900, 900, 900, 900, 900, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}), 350U);
}

TEST(Readapt, one_bad_window_among_good_ones_is) {
  EXPECT_EQ(calls({900, 100, 100, 900, 100, 100, 100, 100, 100, 100, 100, 100}), 50U);
}

TEST(Readapt, a_quarter_above_the_steady_state_is_within) {
  EXPECT_EQ(calls({125, 125, 125, 125, 125, 100, 100, 100, 100, 100}), 0U);
  EXPECT_EQ(calls({126, 126, 126, 126, 126, 100, 100, 100, 100, 100}), 250U);
}

TEST(Readapt, without_windows_there_is_nothing_to_tell) {
  EXPECT_FALSE(calls({}));
  EXPECT_TRUE(std::isnan(steady_state({})));
}

}  // namespace
}  // namespace lrpc::bench
