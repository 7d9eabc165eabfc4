// Measured round-trip times, and the retry timers that follow from them.
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

/// A timer that has measured round trips of 20 us often.
RetryTimer measured() {
  RetryTimer timer(50ms, 50us, 500us, 1s);
  for (int i = 0; i < 100; ++i) timer.sample(20us);
  return timer;
}

TEST(RetryTimerTest, waits_the_initial_time_until_something_is_measured_and_then_twice_that) {
  RetryTimer timer(50ms, 50us, 500us, 1s);
  EXPECT_EQ(timer.timeout(), 50ms);
  for (int i = 0; i < 100; ++i) timer.sample(3ms);
  EXPECT_EQ(timer.timeout(), 6ms);
}

TEST(RetryTimerTest, its_floor_is_low_while_packets_are_lost_and_high_again_some_exchanges_later) {
  RetryTimer timer = measured();
  EXPECT_EQ(timer.timeout(), 500us);
  timer.ambiguous();
  EXPECT_EQ(timer.timeout(), 50us);
  for (int i = 0; i < 30; ++i) timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 50us);
  for (int i = 0; i < 100; ++i) timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 500us);
}

TEST(RetryTimerTest, covers_what_was_sent_again_in_vain_until_something_is_measured) {
  RetryTimer timer = measured();
  timer.needless(700us);
  EXPECT_EQ(timer.timeout(), 1ms);
  timer.needless(10us);
  EXPECT_EQ(timer.timeout(), 1ms);
  timer.needless(10s);
  EXPECT_EQ(timer.timeout(), 1s);
  timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 500us);
}

TEST(RetryTimerTest, what_was_only_late_is_not_taken_for_a_loss) {
  RetryTimer timer = measured();
  for (int i = 0; i < 3; ++i) {  // three callers
    timer.ambiguous();
    timer.ambiguous();
    timer.needless(30us, true);
    timer.needless(30us, true);
    timer.sample(20us);
    EXPECT_EQ(timer.timeout(), 500us);
  }
  timer.ambiguous();  // a loss
  timer.ambiguous();
  timer.needless(30us, true);
  timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 50us);
  for (int i = 0; i < 64; ++i) timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 500us);
  timer.ambiguous();
  timer.needless(30us, true);
  timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 500us) << "the loss is long ago";
}

TEST(RetryTimerTest, never_waits_longer_than_the_longest_pause) {
  RetryTimer timer(5s, 2s, 3s, 1s);
  EXPECT_EQ(timer.timeout(), 1s);
  timer.sample(20us);
  EXPECT_EQ(timer.timeout(), 1s);
  EXPECT_EQ(RetryTimer::pause_after(254, 1s, 1s), 1s);
}

TEST(RetryTimerTest, doubles_its_pause_every_second_time) {
  const Duration expected[] = {50us, 50us, 100us, 100us, 200us, 200us};
  for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(RetryTimer::pause_after(i, 50us, 1s), expected[i]) << i;
}

}  // namespace
}  // namespace lrpc::netrpc
