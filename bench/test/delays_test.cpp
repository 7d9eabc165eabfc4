#include "core/delays.h"

#include <gtest/gtest.h>

#include <vector>

namespace lrpc::bench {
namespace {

Delays delays(const std::vector<double>& signed_ns) { return delays_of(signed_ns); }

TEST(Delays, who_heard_before_the_report_did_not_wait_and_is_counted) {
  const Delays some = delays({-500, 300, -1, 0, 100});
  EXPECT_EQ(some.before, 2U);
  EXPECT_EQ(some.waited.calls, 5U);
  EXPECT_EQ(some.waited.min, 0);
  EXPECT_EQ(some.waited.median, 0);
  EXPECT_EQ(some.waited.max, 300);
}

TEST(Delays, what_is_at_a_bar_meets_it) {
  EXPECT_EQ(delays({1e6, 1e6, 20e6}).missed(), "");
  EXPECT_EQ(delays({1e6 + 1, 1e6 + 1, 20e6}).missed(), "median");
  EXPECT_EQ(delays({0, 0, 20e6 + 1}).missed(), "worst");
  EXPECT_EQ(delays({2e6, 2e6, 21e6}).missed(), "median worst");
}

TEST(Delays, without_any_no_bar_is_met) { EXPECT_EQ(delays({}).missed(), "median worst"); }

}  // namespace
}  // namespace lrpc::bench
