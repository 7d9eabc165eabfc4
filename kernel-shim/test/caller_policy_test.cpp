// How a caller chooses to wait, under a simulated clock.
#include "lrpc/detail/shim/call/caller_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lrpc::shim {
namespace {

using Way = CallerPolicy::Way;
constexpr std::uint16_t kHere = 1;
constexpr std::uint16_t kThere = 2;
constexpr std::uint64_t kPerUs = 10;

/// A caller on kHere, and the hints that it sees.
struct Caller {
  CallerPolicy policy;
  PolledHint polled;
  EStackHint estack = EStackHint::anywhere();
  bool may_yield = true;
  std::uint64_t us = 1'000'000;

  [[nodiscard]] Moment now() const { return {us * kPerUs, kPerUs}; }
  [[nodiscard]] Way choose() {
    if (policy.trusts(polled.bits())) return Way::exchange;
    return policy.choose({.polled = polled, .estack = estack, .processor = kHere, .now = now()}, may_yield);
  }
  void miss() { policy.exchange_missed(now()); }
};

TEST(CallerPolicy, without_hints_it_sleeps) {
  Caller caller;
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.estack = EStackHint::nobody();
  EXPECT_EQ(caller.choose(), Way::sleep);
}

TEST(CallerPolicy, exchanges_with_a_poller_elsewhere_and_asks_nothing_after_the_first_call) {
  Caller caller;
  caller.polled = PolledHint(kThere, 7);
  EXPECT_FALSE(caller.policy.trusts(caller.polled.bits()));
  EXPECT_EQ(caller.choose(), Way::exchange);
  EXPECT_TRUE(caller.policy.trusts(caller.polled.bits()));
  EXPECT_FALSE(caller.policy.trusts(PolledHint().bits())) << "nobody polls";
  EXPECT_FALSE(caller.policy.trusts(PolledHint(kThere, 8).bits())) << "another stint";
  EXPECT_FALSE(caller.policy.trusts(PolledHint(3, 7).bits())) << "another processor";
}

TEST(CallerPolicy, does_not_poll_for_a_poller_on_its_own_processor) {
  Caller caller;
  caller.polled = PolledHint(kHere, 1);
  EXPECT_EQ(caller.choose(), Way::sleep);
  EXPECT_FALSE(caller.policy.trusts(caller.polled.bits()));
}

TEST(CallerPolicy, lends_its_processor_to_a_guest_each_time_anew) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  caller.polled = PolledHint(kHere, 1).as_guest();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(caller.choose(), Way::lend);
    EXPECT_FALSE(caller.policy.trusts(caller.polled.bits()));
  }
  caller.polled = PolledHint(kThere, 1).as_guest();
  EXPECT_EQ(caller.choose(), Way::exchange) << "somebody else's guest";
}

TEST(CallerPolicy, lends_nothing_for_twenty_times_as_long_as_a_loan_in_vain_took) {
  Caller caller;
  caller.polled = PolledHint(kHere, 1).as_guest();
  for (std::uint64_t span = 100'000; span <= 800'000; span *= 2) {
    EXPECT_EQ(caller.choose(), Way::lend);
    caller.us += CallerPolicy::kLendMicroseconds;
    caller.policy.loan_missed(caller.now());
    caller.polled = PolledHint(kHere, span).as_guest();
    caller.us += std::min<std::uint64_t>(span, 500'000) - 1;
    EXPECT_EQ(caller.choose(), Way::sleep) << "a new stint changes nothing";
    caller.us += 1;
  }
}

TEST(CallerPolicy, where_no_processor_has_a_number_a_poller_is_elsewhere) {
  for (const std::uint16_t unknown : {std::uint16_t{0xfffe}, kNoProcessor}) {
    CallerPolicy policy;
    const CallerPolicy::Situation at{
        .polled = PolledHint(unknown, 1), .estack = EStackHint::anywhere(), .processor = unknown, .now = {1'000, 1}};
    EXPECT_EQ(policy.choose(at, true), Way::exchange);
  }
}

TEST(CallerPolicy, a_poller_that_moves_within_its_stint_is_trusted_no_more_for_that) {
  Caller caller;
  for (std::uint16_t processor = 2; processor < 4; ++processor) {
    caller.polled = PolledHint(processor, 1);
    EXPECT_EQ(caller.choose(), Way::exchange);
    caller.miss();
  }
  caller.polled = PolledHint(4, 1);
  EXPECT_EQ(caller.choose(), Way::sleep);
}

TEST(CallerPolicy, looks_up_at_each_turn_of_the_poller_and_offers_its_processor) {
  Caller caller;
  int offers = 0;
  for (std::uint64_t turn = 0; turn < 100; ++turn, caller.us += 300) {
    caller.polled = PolledHint(kThere, 1, turn);
    EXPECT_FALSE(caller.policy.trusts(caller.polled.bits())) << turn;
    EXPECT_EQ(caller.choose(), Way::exchange);
    if (!caller.policy.offer_due(caller.us, caller.now())) continue;
    caller.policy.offered(0, caller.us, caller.now());
    ++offers;
  }
  EXPECT_EQ(offers, 100);
}

TEST(CallerPolicy, a_turn_of_the_same_stint_is_distrusted_as_the_stint) {
  Caller caller;
  for (std::uint64_t turn = 0; turn < 2; ++turn) {
    caller.polled = PolledHint(kThere, 1, turn);
    EXPECT_EQ(caller.choose(), Way::exchange);
    caller.miss();
  }
  caller.polled = PolledHint(kThere, 1, 2);
  EXPECT_EQ(caller.choose(), Way::sleep);
}

TEST(CallerPolicy, a_clock_that_begins_anew_ends_every_distrust) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  caller.policy.yielded(true, 4'000, caller.now());
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.us = 10;
  EXPECT_EQ(caller.choose(), Way::yield);
}

TEST(CallerPolicy, every_stint_has_a_hint_that_is_not_nobody) {
  for (std::uint64_t stint : {std::uint64_t{0}, std::uint64_t{1022}, std::uint64_t{1023}, std::uint64_t{0xffff}}) {
    EXPECT_TRUE(PolledHint(0, stint).polled()) << stint;
    EXPECT_NE(PolledHint(0, stint).bits(), PolledHint(0, stint + 1).bits()) << stint;
  }
  EXPECT_EQ(PolledHint(0xffff, 3).processor(), 0xffff);
  EXPECT_FALSE(PolledHint().polled_and_fenced());
  for (std::uint64_t stint = 0; stint < 2000; ++stint) {
    const PolledHint fenced(7, stint, stint);
    const PolledHint not_fenced = fenced.without_fence();
    EXPECT_TRUE(fenced.polled_and_fenced()) << stint;
    EXPECT_FALSE(not_fenced.polled_and_fenced()) << stint;
    EXPECT_TRUE(not_fenced.polled()) << stint;
    EXPECT_EQ(not_fenced.processor(), 7) << stint;
    EXPECT_EQ(not_fenced.stint(), fenced.stint()) << stint;
  }
}

TEST(CallerPolicy, one_miss_is_an_accident_the_second_ends_the_trust_in_that_stint) {
  Caller caller;
  caller.polled = PolledHint(kThere, 1);
  EXPECT_EQ(caller.choose(), Way::exchange);
  caller.miss();
  EXPECT_EQ(caller.choose(), Way::exchange);
  caller.us += 100;
  caller.miss();
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.polled = PolledHint(kThere, 2);
  EXPECT_EQ(caller.choose(), Way::exchange) << "a new stint";
  caller.polled = PolledHint(kThere, 1);
  caller.us += 1'000;
  EXPECT_EQ(caller.choose(), Way::exchange) << "after a millisecond";
}

TEST(CallerPolicy, misses_that_are_far_apart_are_accidents_all) {
  Caller caller;
  caller.polled = PolledHint(kThere, 1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(caller.choose(), Way::exchange) << i;
    caller.miss();
    caller.us += 2'000;
  }
}

TEST(CallerPolicy, a_poller_that_never_answers_costs_less_and_less) {
  Caller caller;
  caller.polled = PolledHint(kThere, 1);
  int misses = 0;
  for (const std::uint64_t end = caller.us + 1'000'000; caller.us < end; caller.us += 25) {
    if (caller.choose() != Way::exchange) continue;
    caller.miss();
    ++misses;
  }
  EXPECT_GE(misses, 50) << "it is tried again";
  EXPECT_LE(misses, 75) << "two, five while the spans double, then one each 16 ms";
}

TEST(CallerPolicy, yields_only_where_the_estack_is_bound_to_its_processor) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  EXPECT_EQ(caller.choose(), Way::yield);
  caller.estack = EStackHint::beside(kThere);
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.estack = EStackHint::beside(kHere);
  caller.may_yield = false;
  EXPECT_EQ(caller.choose(), Way::sleep);
}

TEST(CallerPolicy, a_caller_that_knows_no_processor_takes_no_hint_for_its_own) {
  for (const EStackHint hint : {EStackHint::nobody(), EStackHint::anywhere(), EStackHint::beside(0)})
    EXPECT_FALSE(hint.is_beside(0xffff));
}

TEST(CallerPolicy, a_yield_that_cost_is_not_risked_before_twenty_times_that) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  caller.policy.yielded(true, 4'000, caller.now());
  EXPECT_EQ(caller.choose(), Way::sleep);
  EXPECT_FALSE(caller.policy.would_yield(caller.now()));
  caller.us += 79'999;
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.us += 2;
  EXPECT_EQ(caller.choose(), Way::yield);
  caller.us += 1'000;
  caller.policy.yielded(true, 4'000, caller.now());
  caller.us += 159'999;
  EXPECT_EQ(caller.choose(), Way::sleep) << "twice as long where it happens again";
}

TEST(CallerPolicy, all_that_yields_cost_beside_a_hog_is_a_twentieth_of_the_time) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  std::uint64_t lost = 0;
  const std::uint64_t began = caller.us;
  while (caller.us < began + 10'000'000) {
    caller.us += 10;
    if (caller.choose() != Way::yield) continue;
    caller.us += 3'000;
    lost += 3'000;
    caller.policy.yielded(true, 3'000, caller.now());
  }
  EXPECT_LE(20 * lost, caller.us - began);
  EXPECT_GE(lost, 10 * 3'000U) << "it is tried again, at least twice a second";
}

TEST(CallerPolicy, yields_that_bring_nothing_are_given_up_after_two) {
  Caller caller;
  caller.estack = EStackHint::beside(kHere);
  caller.policy.yielded(false, 3, caller.now());
  EXPECT_EQ(caller.choose(), Way::yield);
  caller.policy.yielded(false, 3, caller.now());
  EXPECT_EQ(caller.choose(), Way::sleep);
  caller.us += 1'001;
  EXPECT_EQ(caller.choose(), Way::yield);
  caller.policy.yielded(true, 3, caller.now());
  EXPECT_EQ(caller.choose(), Way::yield);
}

TEST(CallerPolicy, no_hint_at_all_makes_it_trust_without_having_chosen) {
  const CallerPolicy policy;
  for (const std::uint32_t hint : {0U, 1U, 0xffffU, 0x7fff'ffffU, 0xffff'ffffU}) EXPECT_FALSE(policy.trusts(hint));
}

/// How many offers a caller makes in one second of calls; each call takes `ran_us` of processor time and `away_us` off
/// it.
int offers_in_a_second(std::uint64_t ran_us, std::uint64_t away_us, std::uint64_t offer_takes_us) {
  Caller caller;
  std::uint64_t ran = 0;
  int offers = 0;
  for (const std::uint64_t end = caller.us + 1'000'000; caller.us < end;) {
    caller.us += ran_us + away_us;
    ran += ran_us;
    if (!caller.policy.offer_due(ran, caller.now())) continue;
    caller.us += offer_takes_us;
    caller.policy.offered(offer_takes_us, ran, caller.now());
    ++offers;
  }
  return offers;
}

TEST(CallerPolicy, offers_its_processor_while_it_computes_and_keeps_half_of_it) {
  EXPECT_NEAR(offers_in_a_second(1, 0, 0), 12'500, 100) << "nobody else wants it";
  EXPECT_NEAR(offers_in_a_second(1, 0, 3'000), 167, 2) << "somebody takes a time slice each time";
}

TEST(CallerPolicy, offers_nothing_to_others_who_have_had_as_much) {
  EXPECT_EQ(offers_in_a_second(30, 90, 3'000), 0);
  EXPECT_EQ(offers_in_a_second(1, 1, 3'000), 0);
  EXPECT_GT(offers_in_a_second(90, 30, 3'000), 100) << "not as much";
}

TEST(CallerPolicy, a_long_sleep_puts_the_next_offer_off_by_one_interval_only) {
  Caller caller;
  caller.us += 10'000'000;
  const std::uint64_t interval = CallerPolicy::kOfferUs;
  EXPECT_FALSE(caller.policy.offer_due(interval, caller.now()));
  caller.us += interval;
  EXPECT_TRUE(caller.policy.offer_due(2 * interval, caller.now()));
  EXPECT_TRUE(caller.policy.offer_due(5, caller.now())) << "another thread";
}

}  // namespace
}  // namespace lrpc::shim
