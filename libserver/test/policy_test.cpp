// The policies of the server's pollers, under a simulated clock.
#include <gtest/gtest.h>

#include <array>

#include "at.h"
#include "poller/guest_policy.h"
#include "poller/poller_load.h"
#include "poller/poller_policy.h"

namespace lrpc::server {
namespace {

TEST(PollerPolicy, offers_its_processor_at_regular_times) {
  PollerPolicy policy;
  policy.begin(at(1'000));
  EXPECT_FALSE(policy.yield_due(at(1'099)));
  EXPECT_TRUE(policy.yield_due(at(1'100)));
  policy.yielded(0, at(1'101));
  EXPECT_FALSE(policy.yield_due(at(1'200)));
  EXPECT_TRUE(policy.yield_due(at(1'201)));
  EXPECT_FALSE(policy.evicted());
}

/// If a machine was suspended or migrated, earlier times may lie hours ahead of the clock.
TEST(Moments, that_lie_far_ahead_are_long_past) {
  const shim::Moment before = at(3'600'000'000);
  const shim::Moment now = at(5);
  EXPECT_EQ(now.since(before.ticks), shim::Moment::kFarUs);
  EXPECT_FALSE(now.before(before.after(100)));
  EXPECT_EQ(now.since(at(6).ticks), 0U) << "another processor's count may be a little ahead";
  EXPECT_TRUE(now.before(now.after(shim::Moment::kFarUs)));
  EXPECT_FALSE(now.before(now.ticks));
}

TEST(Moments, that_lie_far_ahead_keep_no_poller_from_yielding_nor_its_helpers_from_coming) {
  PollerPolicy policy;
  policy.begin(at(3'600'000'000));
  EXPECT_TRUE(policy.yield_due(at(5)));
  StintBackOff back_off;
  back_off.ended(0, at(3'600'000'000));
  EXPECT_TRUE(back_off.over(at(5)));
}

TEST(PollerPolicy, a_time_slice_of_somebody_elses_is_an_eviction) {
  PollerPolicy policy;
  policy.begin(at(1'000));
  policy.yielded(PollerPolicy::kEvictionUs + 1, at(2'200));
  EXPECT_TRUE(policy.evicted());
  EXPECT_EQ(policy.end(at(2'200)), at(2'200 + PollerPolicy::kFirstBackOffUs).ticks);
}

TEST(PollerPolicy, who_takes_a_tenth_in_small_turns_does_not_end_the_stint_who_takes_a_fifth_does) {
  for (const std::uint64_t part : {10U, 5U}) {
    PollerPolicy policy;
    policy.begin(at(0));
    for (std::uint64_t us = 1'000; us < 100'000 && !policy.evicted(); us += 1'000) policy.yielded(1'000 / part, at(us));
    EXPECT_EQ(policy.evicted(), part == 5) << part;
  }
}

TEST(PollerPolicy, moments_are_nobodys) {
  PollerPolicy policy;
  policy.begin(at(0));
  for (std::uint64_t us = 100; us < 100'000; us += 30) policy.yielded(PollerPolicy::kOthersUs, at(us));
  EXPECT_FALSE(policy.evicted());
}

/// A poller that always wants to poll, beside a hog that uses every yield for a slice of 3 ms.
TEST(PollerPolicy, a_hog_keeps_nearly_all_of_its_processor) {
  PollerPolicy policy;
  std::uint64_t us = 0;
  std::uint64_t polled = 0;
  while (us < 10'000'000) {
    policy.begin(at(us));
    us += PollerPolicy::kYieldUs;
    polled += PollerPolicy::kYieldUs;
    ASSERT_TRUE(policy.yield_due(at(us)));
    us += 3'000;
    policy.yielded(3'000, at(us));
    ASSERT_TRUE(policy.evicted());
    const std::uint64_t next = policy.end(at(us)) / kPerUs;
    ASSERT_GT(next, us);
    us = next;
  }
  EXPECT_LE(100 * polled, us);
  EXPECT_GE(polled, 100 * PollerPolicy::kYieldUs) << "and is back within 20 ms when the hog has gone";
}

TEST(PollerPolicy, a_sound_stint_makes_it_as_good_as_new) {
  PollerPolicy policy;
  constexpr std::uint64_t kBegin = 1'000'000;
  for (const std::uint64_t expected : {2'000U, 4'000U, 8'000U, 16'000U, 16'000U}) {
    policy.begin(at(kBegin));
    policy.yielded(5'000, at(kBegin + 10'000));
    EXPECT_EQ(policy.end(at(kBegin + 10'000)), at(kBegin + 10'000 + expected).ticks);
  }
  constexpr std::uint64_t kLater = kBegin + PollerPolicy::kSoundStintUs + 5'001;
  policy.begin(at(kBegin));
  policy.yielded(5'000, at(kLater));
  EXPECT_EQ(policy.end(at(kLater)), at(kLater + PollerPolicy::kFirstBackOffUs).ticks);
}

TEST(PollerPolicy, only_busy_callers_are_to_look_up) {
  PollerPolicy policy;
  policy.begin(at(0));
  int turns = 0;
  std::uint64_t hits = 0;
  for (int i = 0; i < 30; ++i) turns += policy.turns(hits += 1) ? 1 : 0;
  EXPECT_EQ(turns, 0);
  for (int i = 0; i < 30; ++i) turns += policy.turns(hits += 100) ? 1 : 0;
  EXPECT_EQ(turns, 30);
  EXPECT_EQ(policy.turn(), 30U);
}

TEST(PollerPolicy, stints_are_told_apart) {
  PollerPolicy policy;
  policy.begin(at(0));
  const auto first = policy.stint();
  (void)policy.end(at(1));
  policy.begin(at(2));
  EXPECT_NE(policy.stint(), first);
}

TEST(PollerPolicy, evictions_that_are_far_apart_do_not_add_up) {
  PollerPolicy policy;
  for (std::uint64_t us = 1'000; us < 1'000'000'000; us += 200'000'000) {
    policy.begin(at(us));
    policy.yielded(5'000, at(us + 5'000));
    EXPECT_EQ(policy.end(at(us + 5'000)), at(us + 5'000 + PollerPolicy::kFirstBackOffUs).ticks);
  }
}

TEST(PollerPolicy, a_long_turn_of_somebody_elses_is_no_sound_stint) {
  PollerPolicy policy;
  for (const std::uint64_t expected : {2'000U, 4'000U, 8'000U}) {
    policy.begin(at(1'000'000));
    policy.yielded(50'000, at(1'050'100));
    EXPECT_EQ(policy.end(at(1'050'100)), at(1'050'100 + expected).ticks);
  }
}

/// A caller that claims in each call to be on the poller's processor.
TEST(PollerPolicy, a_liar_does_not_chase_it_about) {
  PollerPolicy policy;
  int steps = 0;
  for (std::uint64_t us = 5'000; us < 1'005'000; us += 10) steps += policy.may_step_aside(at(us)) ? 1 : 0;
  EXPECT_EQ(steps, 500);
}

TEST(CallerProcessors, callers_sit_where_they_have_called_from_of_late) {
  CallerProcessors callers;
  const int one = 0;
  const int other = 0;
  EXPECT_FALSE(callers.on(3, at(5'000)));
  callers.called_from(&one, 3, shim::kNoProcessor, at(5'000));
  EXPECT_TRUE(callers.on(3, at(5'000 + CallerProcessors::kRecentUs - 1)));
  EXPECT_FALSE(callers.on(3, at(5'000 + CallerProcessors::kRecentUs)));
  EXPECT_FALSE(callers.on(4, at(5'000)));
  callers.called_from(&one, 4, 3, at(5'100));
  EXPECT_TRUE(callers.on(4, at(5'100)));
  EXPECT_FALSE(callers.on(3, at(5'100))) << "it has moved";
  callers.called_from(&other, shim::kNoProcessor, 4, at(5'100));
  EXPECT_TRUE(callers.on(4, at(5'100))) << "it is another one that says that it has moved";
  EXPECT_FALSE(callers.on(shim::kNoProcessor, at(5'100)));
}

/// Simulates a poller's time, look by look. A scan of the hot set without a call takes half a microsecond.
class Looks {
 public:
  static constexpr std::uint64_t kScansInUs = 2;
  Looks() { load.begin(at(now_)); }
  void idle(std::uint64_t us) { look({.scans = us * kScansInUs, .empty = us * kScansInUs}, us); }
  /// Calls that take `call_us` each. Each begins `think_us` after the return of the previous one.
  void one_caller(unsigned periods, std::uint64_t call_us, std::uint64_t think_us) {
    for (std::uint64_t us = 0; us < periods * PollerLoad::kPeriodUs; us += call_us + think_us)
      look({.scans = 1 + think_us * kScansInUs, .empty = think_us * kScansInUs, .calls = 1}, call_us + think_us);
  }
  /// Each scan finds this many waiting callers.
  void queue(unsigned periods, std::uint64_t callers) {
    for (unsigned i = 0; i < periods; ++i) look({.scans = 1000 / callers, .calls = 1000}, PollerLoad::kPeriodUs);
  }
  PollerLoad load;

 private:
  void look(PollerLook look, std::uint64_t us) {
    now_ += us;
    look.ticks = us * kPerUs;
    (void)load.looked(look, at(now_));
  }
  std::uint64_t now_ = 5'000;
};

TEST(PollerLoad, is_crowded_where_each_scan_meets_a_call_for_some_periods_in_a_row) {
  Looks looks;
  looks.queue(PollerLoad::kCrowdedPeriods - 1, 2);
  EXPECT_FALSE(looks.load.crowded());
  looks.one_caller(1, 1, 1);
  looks.queue(PollerLoad::kCrowdedPeriods - 1, 1);
  EXPECT_FALSE(looks.load.crowded());
  looks.queue(1, 4);
  EXPECT_TRUE(looks.load.crowded());
  EXPECT_FALSE(looks.load.has_room());
  looks.one_caller(2, 1, 1);
  EXPECT_FALSE(looks.load.crowded());
}

TEST(PollerLoad, is_quiet_by_its_time_and_not_by_the_number_of_its_calls) {
  Looks looks;
  looks.idle(20);
  looks.one_caller(PollerLoad::kQuietPeriods + 2, 50, 25);
  EXPECT_FALSE(looks.load.quiet()) << "fifty empty scans for each call, but busy for two thirds of the time";
  EXPECT_FALSE(looks.load.has_room());
  looks.one_caller(PollerLoad::kQuietPeriods - 2, 1, 30);
  EXPECT_FALSE(looks.load.quiet());
  EXPECT_TRUE(looks.load.has_room());
  looks.one_caller(4, 1, 30);
  EXPECT_TRUE(looks.load.quiet());
}

TEST(PollerLoad, passes_for_busy_as_long_as_it_does_not_know_what_a_scan_takes) {
  Looks looks;
  looks.one_caller(2 * PollerLoad::kQuietPeriods, 1, 30);
  EXPECT_FALSE(looks.load.quiet());
  EXPECT_FALSE(looks.load.has_room());
}

TEST(PollerPolicy, a_guest_is_not_evicted_by_what_its_host_takes_in_small_pieces) {
  for (const bool guest : {false, true}) {
    PollerPolicy policy;
    policy.begin(at(0), guest);
    for (std::uint64_t us = 1'000; us < 10'000; us += 1'000) policy.yielded(500, at(us));
    EXPECT_EQ(policy.evicted(), !guest);
    policy.yielded(PollerPolicy::kEvictionUs + 1, at(10'000));
    EXPECT_TRUE(policy.evicted()) << "a time slice is one";
    policy.begin(at(11'000));
    EXPECT_FALSE(policy.evicted());
    const std::uint64_t stint = policy.stint();
    policy.go_on(at(40'000), guest);
    EXPECT_NE(policy.stint(), stint) << "callers trust anew";
    policy.yielded(PollerPolicy::kEvictionUs + 1, at(50'000));
    EXPECT_EQ(policy.end(at(50'000)), at(50'000 + PollerPolicy::kFirstBackOffUs).ticks) << "it has lasted long";
  }
}

/// A guest of two processors, with a given number of calls per microsecond.
struct Guest {
  GuestPolicy policy;
  std::uint64_t us = 0;

  Guest() { policy.begin(at(0)); }
  /// Runs until the turn is over. Returns whether there is a next one.
  bool turn(double calls_each_us, std::uint64_t processors = 2) {
    double rest = 0;
    for (;;) {
      us += 10;
      rest += 10 * calls_each_us;
      const auto calls = static_cast<std::uint64_t>(rest);
      rest -= static_cast<double>(calls);
      if (policy.turn_over(calls, at(us))) return policy.next_turn(processors, at(us));
    }
  }
};

TEST(GuestPolicy, goes_from_host_to_host_while_more_is_called_than_without_it) {
  constexpr double kWithout = 2.0 / GuestPolicy::kCallUs;
  Guest guest;
  EXPECT_TRUE(guest.turn(1.1 * kWithout));
  EXPECT_EQ(guest.us, GuestPolicy::kTrialUs);
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(guest.turn(1.1 * kWithout));
  EXPECT_EQ(guest.us, GuestPolicy::kTrialUs + 1'000 * GuestPolicy::kTurnUs);
}

TEST(GuestPolicy, leaves_after_a_trial_in_vain_and_comes_back_more_and_more_rarely) {
  Guest guest;
  std::uint64_t wasted = 0;
  constexpr std::uint64_t kTime = 10'000'000;
  while (guest.us < kTime) {
    const std::uint64_t began = guest.us;
    guest.policy.begin(at(began));
    EXPECT_FALSE(guest.turn(0.9 * 2 / GuestPolicy::kCallUs));
    wasted += guest.us - began;
    guest.policy.end(at(guest.us));
    EXPECT_FALSE(guest.policy.may_begin(at(guest.us)));
    while (!guest.policy.may_begin(at(guest.us))) guest.us += 1'000;
  }
  EXPECT_LT(wasted, kTime / 1'000);
}

TEST(GuestPolicy, one_turn_that_is_disturbed_does_not_end_it_two_do) {
  Guest guest;
  EXPECT_TRUE(guest.turn(2));
  EXPECT_TRUE(guest.turn(0));
  EXPECT_TRUE(guest.turn(2));
  EXPECT_TRUE(guest.turn(0));
  EXPECT_FALSE(guest.turn(0));
}

TEST(GuestPolicy, has_to_bring_more_where_there_are_more_processors_to_call_from) {
  EXPECT_TRUE(Guest().turn(2, 5));
  EXPECT_FALSE(Guest().turn(2, 7));
}

TEST(StintBackOff, doubles_for_those_that_end_soon_and_begins_anew_after_a_sound_one) {
  StintBackOff back_off;
  EXPECT_TRUE(back_off.over(at(5'000)));
  std::uint64_t now = 10'000;
  for (std::uint64_t expected = StintBackOff::kFirstUs; expected < StintBackOff::kLastUs; expected *= 2) {
    back_off.ended(1'000, at(now));
    EXPECT_FALSE(back_off.over(at(now + expected - 1)));
    now += expected;
    EXPECT_TRUE(back_off.over(at(now)));
  }
  for (int i = 0; i < 5; ++i) back_off.ended(1'000, at(now));
  EXPECT_TRUE(back_off.over(at(now + StintBackOff::kLastUs)));
  back_off.ended(StintBackOff::kSoundUs, at(now));
  EXPECT_TRUE(back_off.over(at(now + StintBackOff::kFirstUs)));
}

TEST(EverySecondCaller, leaves_with_all_that_it_has_in_flight) {
  EverySecondCaller leaves;
  const int binding = 0;
  for (int round = 0; round < 3; ++round) {
    for (std::uint16_t processor = 0; processor < 6; ++processor)
      EXPECT_EQ(leaves(processor, &binding), processor % 2 == 1);
  }
}

TEST(EverySecondCaller, is_none_of_one_caller_and_one_in_each_binding_that_does_not_say_where_it_is) {
  const std::array<int, 3> bindings{};
  EverySecondCaller alone;
  for (int i = 0; i < 64; ++i) EXPECT_FALSE(alone(7, &bindings[static_cast<std::size_t>(i % 3)]));
  EverySecondCaller silent;
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(silent(shim::kNoProcessor, &bindings[i % 3]), i % 3 == 1);
}

}  // namespace
}  // namespace lrpc::server
