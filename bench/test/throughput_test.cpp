#include "core/throughput.h"

#include <gtest/gtest.h>

#include "floors/naive.h"

namespace lrpc::bench {
namespace {

TEST(Throughput, doubles_up_to_what_the_machine_allows) {
  EXPECT_EQ(client_counts(0), (std::vector<std::size_t>{}));
  EXPECT_EQ(client_counts(1), (std::vector<std::size_t>{1}));
  EXPECT_EQ(client_counts(2), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(client_counts(6), (std::vector<std::size_t>{1, 2, 4, 6}));
}

TEST(Throughput, scaling_is_one_when_nobody_costs_the_others_anything) {
  EXPECT_EQ(scaling({.together = 400, .alone = 100}, 4), 1);
  EXPECT_EQ(scaling({.together = 100, .alone = 100}, 4), 0.25);
}

TEST(Throughput, two_callers_that_call_nobody_make_more_calls_than_none) {
  const TickClock clock = TickClock::calibrate();
  const Seat seat = own_seat();
  auto one = Caller::create(make_plain_call(PlainProcedure::null), seat, clock);
  auto other = Caller::create(make_plain_call(PlainProcedure::null), seat, clock);
  ASSERT_TRUE(one && other);
  for (int turn = 0; turn < 3; ++turn) {
    Caller* const both[] = {one->get(), other->get()};
    const auto rate = Caller::rate(both, std::chrono::milliseconds(2), clock);
    ASSERT_TRUE(rate);
    EXPECT_GT(*rate, 0);
  }
}

}  // namespace
}  // namespace lrpc::bench
