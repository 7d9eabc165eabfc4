// Which host is tried first, what is known without etcd, and what a user may take: without etcd and without time.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <map>
#include <type_traits>

#include "boot_clock.h"
#include "lookup/last_answers.h"
#include "lookup/lookup_budgets.h"
#include "lookup/pick.h"
#include "publish/publisher_policy.h"
#include "serving.h"

namespace lrpc::directory {
namespace {

using namespace std::chrono_literals;
using Moment = std::chrono::steady_clock::time_point;

// ---- which host ----

constexpr Host kOwn = 0x0a00'0001;

TEST(Picking, this_machine_comes_first) {
  std::mt19937_64 chance(1);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(pick({kOwn + 2, kOwn + 1, kOwn}, kOwn, 0, {}, {}, chance, 8).front(), kOwn);
}

TEST(Picking, other_hosts_come_in_an_order_by_chance_and_each_is_first_sometimes) {
  std::mt19937_64 chance(1);
  std::map<Host, int> first;
  for (int i = 0; i < 3000; ++i) ++first[pick({11, 12, 13}, kOwn, 0, {}, {}, chance, 8).front()];
  for (const auto& [host, times] : first) EXPECT_GT(times, 800) << host;
}

TEST(Picking, a_host_that_was_not_reached_comes_last_for_the_user_who_said_so_and_for_a_while) {
  std::mt19937_64 chance(1);
  Suspects suspects;
  const Moment now{std::chrono::hours(1)};
  suspects.report(1000, 11, false, now);
  bool first_for_another = false;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pick({11, 12}, kOwn, 1000, suspects, now + 29s, chance, 8).back(), 11U);
    first_for_another = first_for_another || pick({11, 12}, kOwn, 1001, suspects, now, chance, 8).front() == 11;
  }
  EXPECT_TRUE(first_for_another);
  EXPECT_FALSE(suspects.is_suspect(1000, 11, now + 30s));
  suspects.report(1000, 11, true, now);
  EXPECT_FALSE(suspects.is_suspect(1000, 11, now));
}

TEST(Picking, this_machine_comes_first_even_where_it_was_not_reached) {
  std::mt19937_64 chance(1);
  Suspects suspects;
  suspects.report(0, kOwn, false, Moment(1h));
  EXPECT_EQ(pick({kOwn, 12}, kOwn, 0, suspects, Moment(1h), chance, 8), (std::vector<Host>{kOwn, 12}))
      << "under its address it cannot be imported at all";
}

TEST(Picking, remembers_a_bounded_number_of_reports) {
  Suspects suspects;
  for (Host host = 1; host <= Suspects::kMost + 1; ++host) suspects.report(0, host, false, Moment(1h));
  EXPECT_FALSE(suspects.is_suspect(0, 1, Moment(1h)));
  EXPECT_TRUE(suspects.is_suspect(0, Suspects::kMost + 1, Moment(1h)));
}

TEST(Picking, one_users_reports_make_nobody_elses_forgotten) {
  Suspects suspects;
  suspects.report(1000, 1, false, Moment(1h));
  suspects.report(1001, 1, false, Moment(1h));
  for (Host host = 1; host <= 2 * Suspects::kMost; ++host) suspects.report(1002, host, false, Moment(1h));
  EXPECT_TRUE(suspects.is_suspect(1000, 1, Moment(1h)));
  EXPECT_TRUE(suspects.is_suspect(1001, 1, Moment(1h)));
  EXPECT_FALSE(suspects.is_suspect(1002, Suspects::kMost, Moment(1h)));
  EXPECT_TRUE(suspects.is_suspect(1002, 2 * Suspects::kMost, Moment(1h)));
}

TEST(Picking, gives_at_most_as_many_hosts_as_are_asked_for) {
  std::mt19937_64 chance(1);
  std::vector<Host> many;
  for (Host host = 100; host < 400; ++host) many.push_back(host);
  many.push_back(kOwn);
  const auto picked = pick(many, kOwn, 0, {}, {}, chance, 8);
  EXPECT_EQ(picked.size(), 8U);
  EXPECT_EQ(picked.front(), kOwn);
}

// Leases expire at etcd, and answers get old, also while this machine is suspended.
static_assert(std::is_same_v<LastAnswers::Time, BootClock::time_point>);
static_assert(std::is_same_v<PublisherPolicy::Time, BootClock::time_point>);

TEST(BootClockTest, tells_the_time_since_the_boot_suspends_included) {
  const auto told = [] {
    timespec now{};
    EXPECT_EQ(::clock_gettime(CLOCK_BOOTTIME, &now), 0);
    return BootClock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  };
  const auto before = told();
  const auto now = BootClock::now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, told());
}

TEST(LastAnswersTest, are_given_with_their_age_and_not_when_they_are_too_old) {
  LastAnswers answers(10s);
  const LastAnswers::Time now(1h);
  answers.store("a", {{"a", 11, 1, {"I", 1, 0, 7}}}, now);
  EXPECT_EQ(answers.find("a", now + 10s)->age, 10s);
  EXPECT_FALSE(answers.find("a", now + 10s + 1ms));
  answers.store("a", {}, now);
  EXPECT_FALSE(answers.find("a", now)) << "a withdrawn name does not come back";
}

TEST(LastAnswersTest, are_bounded) {
  LastAnswers answers(10s);
  const LastAnswers::Time now(1h);
  const auto name_of = [](std::size_t i) { return std::to_string(9'999 - i); };
  const auto store = [&](std::size_t i) { answers.store(name_of(i), {{"a", 11, 1, {"I", 1, 0, 7}}}, now); };
  for (std::size_t i = 0; i < LastAnswers::kMostNames; ++i) store(i);
  store(0);
  store(LastAnswers::kMostNames);
  EXPECT_EQ(answers.size(), LastAnswers::kMostNames);
  EXPECT_FALSE(answers.find(name_of(1), now)) << "the name stored longest ago is dropped";
  EXPECT_TRUE(answers.find(name_of(0), now)) << "it was stored again";
  EXPECT_TRUE(answers.find(name_of(2), now));
  EXPECT_TRUE(answers.find(name_of(LastAnswers::kMostNames), now));
}

TEST(LookupBudgetsTest, of_a_user_that_asks_in_a_loop_leave_those_of_others_whole) {
  LookupBudgets budgets({.burst = 3, .comes_back = 10ms});
  const Moment now{std::chrono::hours(1)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budgets.spend(1, now));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(budgets.spend(1, now));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budgets.spend(2, now));
}

TEST(LookupBudgetsTest, come_back_with_time_up_to_the_whole) {
  LookupBudgets budgets({.burst = 3, .comes_back = 10ms});
  Moment now{std::chrono::hours(1)};
  const auto spent = [&] {
    int count = 0;
    while (budgets.spend(1, now)) ++count;
    return count;
  };
  EXPECT_EQ(spent(), 3);
  now += 9ms;
  EXPECT_EQ(spent(), 0);
  now += 1ms;
  EXPECT_EQ(spent(), 1);
  now += 1h;
  EXPECT_EQ(spent(), 3);
}

TEST(LookupBudgetsTest, that_are_whole_are_forgotten) {
  LookupBudgets budgets({.burst = 3, .comes_back = 10ms});
  const Moment now{std::chrono::hours(1)};
  for (uid_t user = 0; user < 100; ++user) EXPECT_TRUE(budgets.spend(user, now));
  EXPECT_EQ(budgets.size(), 100U);
  EXPECT_TRUE(budgets.spend(7, now + 1s));
  EXPECT_EQ(budgets.size(), 1U);
}

TEST(ServingOptions, leave_descriptors_for_etcd_and_seven_eighths_for_other_users) {
  for (const std::uint64_t descriptors : {1024U, 4096U, 20'000U, 1U << 20}) {
    const ServerOptions options = serving_options(descriptors);
    EXPECT_LE(2 * options.max_bindings + 300, descriptors);
    EXPECT_LE(8 * options.max_bindings_per_user, options.max_bindings);
    EXPECT_GE(options.max_bindings_per_user, 40U) << descriptors;
    EXPECT_EQ(8 * options.max_estacks_per_user.value(), options.max_estacks);
    EXPECT_EQ(options.max_grown_astacks_per_user, 0U);
  }
  EXPECT_EQ(serving_options(1 << 20).max_bindings_per_user, 256U);
  EXPECT_GE(serving_options(10).max_bindings_per_user, 1U) << "0 would be none at all";
}

TEST(ServingOptions, of_few_descriptors_are_told_with_what_is_left_to_a_user) {
  EXPECT_TRUE(few_imports(serving_options(256), 256).starts_with("at most 8 imports"));
  EXPECT_EQ(few_imports(serving_options(1024), 1024), "");
}

}  // namespace
}  // namespace lrpc::directory
