// What timeouts are made of.
#include "round_trip.h"

#include <gtest/gtest.h>

namespace lrpc::netrpc {
namespace {

using namespace std::chrono_literals;

TEST(SmoothedTimeTest, the_first_sample_counts_whole_and_strays_by_half_of_it) {
  SmoothedTime time;
  EXPECT_FALSE(time.measured());
  time.sample(80us);
  EXPECT_TRUE(time.measured());
  EXPECT_EQ(time.smoothed(), 80us);
  EXPECT_EQ(time.bound(), 240us);
}

TEST(SmoothedTimeTest, later_ones_move_it_by_an_eighth_and_its_deviation_by_a_quarter) {
  SmoothedTime time;
  time.sample(80us);
  time.sample(160us);
  EXPECT_EQ(time.smoothed(), 90us);
  EXPECT_EQ(time.bound(), 90us + 4 * 50us);
  time.sample(10us);
  EXPECT_EQ(time.smoothed(), 80us);
  EXPECT_EQ(time.bound(), 80us + 4 * 57500ns);
}

TEST(SmoothedTimeTest, what_never_strays_is_bounded_by_the_margin) {
  SmoothedTime time;
  for (int i = 0; i < 200; ++i) time.sample(80us);
  EXPECT_EQ(time.smoothed(), 80us);
  EXPECT_LT(time.bound(), 81us);
  EXPECT_EQ(time.bound(200us), 280us);
}

}  // namespace
}  // namespace lrpc::netrpc
