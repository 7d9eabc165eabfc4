// Deadlines that are measured by time stamps.
#include "lrpc/detail/shim/call/limits.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;
using Clock = Deadline::Clock;

/// Whether the time left is between the clock's values before and after, within `give`. That may fail once if the two
/// clocks could not be read together.
bool is_left(Deadline& deadline, Clock::time_point until, std::chrono::nanoseconds give) {
  const auto before = std::chrono::nanoseconds(until - Clock::now());
  const std::chrono::nanoseconds left(deadline.left());
  const auto after = std::chrono::nanoseconds(until - Clock::now());
  return left <= before + give && left >= after - give;
}
/// Whether one of some rounds succeeds: only a fault makes all of them fail.
template <class Round>
bool once(const Round& round) {
  for (int i = 0; i < 30; ++i)
    if (round()) return true;
  return false;
}

TEST(TheRateOfTicks, is_what_was_measured_between_two_looks) {
  EXPECT_DOUBLE_EQ(rate_between(0.5, 5'050, 0, 10'000), 0.505);
  EXPECT_DOUBLE_EQ(rate_between(0.5, 3'600'000'000'000, 1'000, 7'200'000'001'000), 0.5);
}

TEST(TheRateOfTicks, is_the_first_where_the_time_stamps_began_anew) {
  const std::uint64_t restarted = 5'000'000'000;
  EXPECT_DOUBLE_EQ(rate_between(0.5, 3'600'000'000'000, restarted, restarted + 10), 0.5) << "an hour is no ten ticks";
  EXPECT_DOUBLE_EQ(rate_between(0.5, 3'600'000'000'000, restarted, 10), 0.5) << "they ran backwards";
  EXPECT_DOUBLE_EQ(rate_between(0.5, 1, 0, ~std::uint64_t{0}), 0.5);
  EXPECT_DOUBLE_EQ(rate_between(0.5, 0, 0, 10'000), 0.5);
  EXPECT_DOUBLE_EQ(rate_between(0.5, -1, 0, 10'000), 0.5);
}

/// The ticks and the clock, read within ten microseconds.
std::pair<std::uint64_t, Clock::time_point> read_together() {
  for (;;) {
    const auto before = Clock::now();
    const std::uint64_t tick = ticks();
    if (Clock::now() - before < 10us) return {tick, before};
  }
}

TEST(TheRateOfTicks, is_known_to_a_hundredth_at_once) {
  const double first = nanoseconds_per_tick();
  const auto [tick, begin] = read_together();
  std::this_thread::sleep_for(5ms);
  const auto [later, end] = read_together();
  const auto ns = static_cast<double>(std::chrono::nanoseconds(end - begin).count());
  EXPECT_NEAR(first / (ns / static_cast<double>(later - tick)), 1, 0.01);
}

TEST(Deadlines, of_a_peer_that_are_looked_at_late_are_told_as_well_as_those_that_are_looked_at_soon) {
  (void)ticks_per_microsecond();
  std::this_thread::sleep_for(20ms);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(once([] {
      Deadline deadline{Deadline::OfPeers{}};
      const auto began = Clock::now();
      deadline.begin(std::chrono::nanoseconds(1h).count());
      const auto begun = Clock::now();
      std::this_thread::sleep_for(200ms);
      // With only the first rate, it would be wrong by up to 400 us.
      const auto give = 50us + (begun - began);
      return is_left(deadline, began + 1h, give) && is_left(deadline, began + 1h, give);
    }));
  }
}

TEST(Deadlines, of_a_peer_are_not_over_because_the_counter_has_jumped_since_they_began) {
  const std::uint64_t jump = ticks() / 2;  // half of this machine's uptime
  const std::chrono::microseconds left(jump / ticks_per_microsecond() / 2);
  const auto left_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(left).count());
  for (const std::uint64_t began_at : {ticks() - jump, ticks() + jump}) {
    const auto before = Clock::now();
    Deadline deadline{Deadline::OfPeers{}};
    deadline.begin(left_ns, began_at);
    EXPECT_GT(deadline.left(), 0);
    EXPECT_GE(deadline.until(), before + left);
  }
}

TEST(Deadlines, at_a_time_are_told_by_the_clock) {
  EXPECT_TRUE(once([] {
    const auto until = Clock::now() + 5s;
    Deadline deadline(until);
    const bool at_once = is_left(deadline, until, 50us);
    std::this_thread::sleep_for(20ms);
    const bool later = is_left(deadline, until, 50us);
    EXPECT_EQ(deadline.until(), until);
    return at_once && later;
  }));
  Deadline never(Clock::time_point::max());
  EXPECT_FALSE(never.ever());
  EXPECT_EQ(never.left(), Deadline::kNever);
}

TEST(Deadlines, of_a_peer_are_a_year_at_most) {
  Deadline deadline{Deadline::OfPeers{}};
  for (const std::uint64_t left : {~std::uint64_t{0}, std::uint64_t{1} << 63, std::uint64_t{Deadline::kMost} + 1}) {
    deadline.begin(left);
    EXPECT_LE(deadline.left(), Deadline::kMost);
    EXPECT_GT(deadline.left(), Deadline::kMost / 2);
    EXPECT_GT(deadline.until(), Clock::now() + 24h * 300);
  }
}

}  // namespace
}  // namespace lrpc::shim
