// The replay window, compared with a set that forgets nothing.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "netrpc/protocols/auth/association.h"

namespace lrpc::netrpc::auth {
namespace {

TEST(ReplayWindow, accepts_each_counter_once) {
  ReplayWindow window;
  EXPECT_FALSE(window.fresh(0));
  for (std::uint64_t counter : {1U, 2U, 5U, 3U, 1024U, 1500U, 700U}) {
    EXPECT_TRUE(window.fresh(counter)) << counter;
    window.accept(counter);
    EXPECT_FALSE(window.fresh(counter)) << counter;
  }
}

TEST(ReplayWindow, refuses_what_is_too_old_to_know) {
  ReplayWindow window;
  window.accept(5000);
  EXPECT_TRUE(window.fresh(5000 - ReplayWindow::kSize + 1));
  EXPECT_FALSE(window.fresh(5000 - ReplayWindow::kSize));
}

TEST(ReplayWindow, agrees_with_a_set_over_random_walks) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    ReplayWindow window;
    std::set<std::uint64_t> seen;
    std::uint64_t highest = 0;
    std::uint64_t base = 1;
    for (int i = 0; i < 20000; ++i) {
      base += random() % 3;
      if (random() % 1000 == 0) base += random() % 5000;
      const std::uint64_t counter = base + random() % 200 < 100 ? 1 : base + random() % 200 - 100;
      const bool expected = !seen.contains(counter) && (counter > highest || highest - counter < ReplayWindow::kSize);
      ASSERT_EQ(window.fresh(counter), expected) << "seed " << seed << " counter " << counter << " highest " << highest;
      if (!expected) continue;
      window.accept(counter);
      seen.insert(counter);
      highest = std::max(highest, counter);
    }
  }
}

}  // namespace
}  // namespace lrpc::netrpc::auth
