#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "eventually.h"
#include "lrpc/detail/shim/call/gates.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;
using testing_lrpc::eventually;

TEST(DeadlineClock, counts_down_by_ticks_and_by_the_clock) {
  Deadline never;
  EXPECT_FALSE(never.ever());
  EXPECT_EQ(never.left(), Deadline::kNever);
  EXPECT_EQ(never.until(), std::chrono::steady_clock::time_point::max());
  const auto until = std::chrono::steady_clock::now() + 100ms;
  Deadline at(until);
  EXPECT_EQ(at.until(), until);
  std::int64_t before = at.left();
  EXPECT_LE(before, 100'000'000);
  while (at.left() > 20'000'000) {  // reads the clock sometimes, and the counter often
    const std::int64_t now = at.left();
    EXPECT_LE(now, before + 1'000'000) << "ticks and clock agree within a rate that was measured in 30 us";
    before = now;
  }
  std::this_thread::sleep_until(until);
  EXPECT_LE(at.left(), 0);

  EXPECT_EQ(at.left_by_ticks(), 0) << "nothing is left";

  Deadline begun{Deadline::OfPeers()};
  begun.begin(50'000'000);
  EXPECT_LE(begun.left(), 50'000'000);
  std::this_thread::sleep_for(60ms);
  EXPECT_LE(begun.left(), 0);
  EXPECT_LE(begun.until(), std::chrono::steady_clock::now());
  begun.begin(~std::uint64_t{0});
  EXPECT_LE(begun.left(), Deadline::kMost);
  EXPECT_GT(begun.left(), 0);
  begun.begin(static_cast<std::uint64_t>(Deadline::kNever));
  EXPECT_TRUE(begun.ever());
  EXPECT_LE(begun.left(), Deadline::kMost);
  EXPECT_GT(begun.until(), std::chrono::steady_clock::now());
}

TEST(DeadlineClock, tells_the_call_path_what_is_left_only_where_ticks_suffice) {
  EXPECT_EQ(Deadline().left_by_ticks(), 0);
  Deadline at(std::chrono::steady_clock::now() + 1h);
  // At most 10 ms pass between two reads of the clock. It was just read, unless this thread was held up.
  EXPECT_TRUE(eventually([&] { return at.left() > 0 && at.left_by_ticks() > 0; }));
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(at.left_by_ticks(), 0) << "the clock is to be asked";
  EXPECT_GT(at.left(), 0);
  CallLimits limits(at);
  limits.set_cancellations(std::make_shared<const Cancellations>());
  EXPECT_GT(limits.deadline.left(), 0);
  EXPECT_EQ(limits.deadline.left_by_ticks(), 0) << "there is more to look at";
}

}  // namespace
}  // namespace lrpc::shim
