// PollPace on simulated machines: how long a call takes at each pace, and what disturbs it.
#include "lrpc/detail/shim/call/poll_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>

namespace lrpc::shim {
namespace {

/// The ticks from one call to the next, with this many delays between two looks.
using Machine = std::function<std::uint64_t(unsigned delays)>;

std::uint64_t looks_are_dear(unsigned delays) { return delays >= 4 ? 150 : 210 - 10 * delays; }
std::uint64_t looks_are_cheap(unsigned delays) { return 60 + 15 * delays; }

/// A caller whose calls all return.
class PacedCaller {
 public:
  explicit PacedCaller(Machine machine, std::uint32_t most = 5) : machine_(std::move(machine)), most_(most) {}
  void move_to(Machine machine) { machine_ = std::move(machine); }
  void call() {
    now_ += machine_(pace_.delays());
    if (pace_.returned()) pace_.tell_time(now_, most_);
  }
  /// Makes `times` calls. Returns how many of them were at the pace of `delays`.
  std::uint32_t call(std::uint32_t times, unsigned delays) {
    std::uint32_t at_it = 0;
    for (; times > 0; --times) {
      if (pace_.delays() == delays) ++at_it;
      call();
    }
    return at_it;
  }
  [[nodiscard]] unsigned delays() const { return pace_.delays(); }
  void begin_anew(std::uint64_t now) { now_ = now; }

 private:
  PollPace pace_;
  Machine machine_;
  std::uint32_t most_;
  std::uint64_t now_ = 1'000'000;
};

constexpr std::uint32_t kTrial = PollPace::kBlocks * PollPace::kCallsInBlock;
constexpr std::uint32_t kRound = 3 * kTrial + PollPace::kHeldCalls;
/// The first block, then the trials.
constexpr std::uint32_t kUntilHeld = PollPace::kCallsInBlock + 3 * kTrial;

TEST(PollPaces, are_slow_where_looks_are_dear) {
  PacedCaller caller(looks_are_dear);
  caller.call(kUntilHeld, 0);
  EXPECT_EQ(caller.call(PollPace::kHeldCalls, 4), PollPace::kHeldCalls);
}

TEST(PollPaces, are_quick_where_looks_are_cheap) {
  PacedCaller caller(looks_are_cheap);
  caller.call(kUntilHeld, 0);
  EXPECT_EQ(caller.call(PollPace::kHeldCalls, 1), PollPace::kHeldCalls);
}

TEST(PollPaces, hold_for_all_but_a_fortieth_of_the_calls) {
  PacedCaller caller(looks_are_dear);
  EXPECT_GE(caller.call(10 * kRound, 4), 10 * kRound - 10 * kRound / 40);
}

TEST(PollPaces, follow_a_machine_that_changes) {
  PacedCaller caller(looks_are_dear);
  caller.call(kUntilHeld, 0);
  caller.move_to(looks_are_cheap);
  caller.call(kRound, 0);
  EXPECT_EQ(caller.delays(), 1U);
  caller.move_to(looks_are_dear);
  caller.call(kRound, 0);
  EXPECT_EQ(caller.delays(), 4U);
}

TEST(PollPaces, are_not_misled_by_calls_that_are_held_up) {
  std::mt19937 random(7);
  int right = 0;
  for (int i = 0; i < 100; ++i) {
    PacedCaller caller([&](unsigned delays) {
      const std::uint64_t takes = looks_are_dear(delays) + random() % 20;
      return random() % 50 == 0 ? takes + 3'000'000 : takes;
    });
    caller.call(kUntilHeld, 0);
    right += caller.delays() == 4 ? 1 : 0;
  }
  EXPECT_GE(right, 95);
}

TEST(PollPaces, outlive_a_counter_that_begins_anew) {
  PacedCaller caller(looks_are_dear);
  caller.call(kTrial, 0);
  caller.begin_anew(0);
  caller.call(kUntilHeld - kTrial, 0);
  EXPECT_EQ(caller.delays(), 4U);
}

TEST(PollPaces, never_exceed_what_a_call_may_be_late) {
  for (const std::uint32_t most : {0U, 1U, 2U, 3U, 64U, 1'000'000U}) {
    PacedCaller caller([](unsigned delays) { return 1'000'000 - delays; }, most);
    unsigned longest = 0;
    for (std::uint32_t i = 0; i < 2 * kRound; ++i) {
      caller.call();
      longest = std::max(longest, caller.delays());
    }
    EXPECT_GE(longest, 1U);
    EXPECT_LE(longest, std::max(most, 1U));
  }
}

}  // namespace
}  // namespace lrpc::shim
