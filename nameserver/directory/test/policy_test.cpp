// What is to be published next, and which host is tried first: without etcd and without time.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lookup/last_answers.h"
#include "lookup/lookup_budgets.h"
#include "lookup/pick.h"
#include "publish/publisher_policy.h"
#include "serving.h"

namespace lrpc::directory {
namespace {

using namespace std::chrono_literals;
using What = PublisherPolicy::What;
using Time = PublisherPolicy::Time;

/// An etcd of the mind: does what the policy says, and keeps what etcd would keep.
class Publishing : public ::testing::Test {
 protected:
  /// Performs steps until the policy waits; at most `most`. Returns what was done, a letter each.
  std::string perform(int most = 1000) {
    std::string done;
    for (int i = 0; i < most; ++i) {
      const auto step = policy.next(now);
      switch (step.what) {
        case What::wait: return done;
        case What::grant:
          done += 'g';
          lease = ++last_lease;
          policy.granted({lease, 30s}, now);
          break;
        case What::keep_alive:
          done += 'k';
          policy.kept({step.lease, step.lease == lease ? 30s : 0s}, now);
          break;
        case What::audit:
          done += 'a';
          policy.audited(keys.size(), now);
          break;
        case What::put:
          done += 'p';
          EXPECT_LE(step.entries.size(), kMostOperations);
          for (const auto& entry : step.entries) keys[entry.key] = entry.value;
          policy.put_or_removed(step);
          break;
        case What::remove:
          done += 'r';
          keys.erase(step.entries.front().key);
          policy.put_or_removed(step);
          break;
      }
    }
    return done;
  }
  void lose_everything() {
    lease = 0;
    keys.clear();
  }

  PublisherPolicy policy{{}};
  Time now{std::chrono::hours(1)};
  LeaseId lease = 0;
  LeaseId last_lease = 0;
  std::map<std::string, std::string> keys;
};

TEST_F(Publishing, asks_for_no_lease_without_a_name) { EXPECT_EQ(perform(), ""); }

TEST_F(Publishing, grants_a_lease_and_puts_all_names_in_one_transaction) {
  policy.wanted({{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(perform(), "gp");
  EXPECT_EQ(keys, (PublisherPolicy::Names{{"a", "1"}, {"b", "2"}}));
  EXPECT_TRUE(policy.settled());
}

TEST_F(Publishing, cuts_many_names_into_transactions_that_etcd_takes) {
  PublisherPolicy::Names names;
  for (int i = 0; i < 250; ++i) names.emplace(std::to_string(i), "v");
  policy.wanted(names);
  EXPECT_EQ(perform(), "gppp");
  EXPECT_EQ(keys, names);
}

TEST_F(Publishing, removes_what_is_withdrawn_and_puts_what_has_changed) {
  policy.wanted({{"a", "1"}, {"b", "2"}});
  perform();
  policy.wanted({{"b", "3"}});
  EXPECT_EQ(perform(), "rp");
  EXPECT_EQ(keys, (PublisherPolicy::Names{{"b", "3"}}));
}

TEST_F(Publishing, keeps_its_lease_alive_three_times_within_it) {
  policy.wanted({{"a", "1"}});
  perform();
  for (int i = 0; i < 3; ++i) {
    const Time until = policy.next(now).until;
    EXPECT_LE(until - now, 10s);
    now = until;
    EXPECT_EQ(perform(), "k");
  }
}

TEST_F(Publishing, puts_everything_again_under_a_new_lease_when_etcd_has_lost_the_old_one) {
  policy.wanted({{"a", "1"}});
  perform();
  lose_everything();
  now += 10s;
  EXPECT_EQ(perform(), "kgp");
  EXPECT_EQ(keys.size(), 1U);
}

TEST_F(Publishing, notices_by_its_audit_that_somebody_has_removed_a_key) {
  policy.wanted({{"a", "1"}, {"b", "2"}});
  perform();
  keys.erase("a");
  std::string done;
  for (int i = 0; i < 4; ++i) {
    now += 10s;
    done += perform();
  }
  EXPECT_EQ(done, "kkkkap");
  EXPECT_EQ(keys.size(), 2U);
}

TEST_F(Publishing, waits_longer_after_each_failure_and_never_more_than_ten_seconds) {
  policy.wanted({{"a", "1"}});
  auto last = 0ms;
  for (int i = 0; i < 12; ++i) {
    const auto step = policy.next(now);
    ASSERT_EQ(step.what, What::grant);
    policy.failed(step, Errc::remote_unavailable, now, 1);
    const auto pause = std::chrono::duration_cast<std::chrono::milliseconds>(policy.next(now).until - now);
    EXPECT_GE(pause, last);
    EXPECT_LE(pause, 10s);
    last = pause;
    now += pause;
  }
  EXPECT_EQ(last, 10s);
  perform();
  EXPECT_TRUE(policy.settled()) << "and goes on when etcd is back";
}

TEST_F(Publishing, asks_again_within_a_third_of_a_lease_whatever_has_failed_how_often) {
  PublisherPolicy brief{{.ttl = 3s}};
  brief.wanted({{"a", "1"}});
  brief.granted({7, 3s}, now);
  for (int i = 0; i < 12; ++i) {
    brief.failed(brief.next(now), Errc::remote_unavailable, now, 1);
    const Time until = brief.next(now).until;
    EXPECT_LE(until - now, 1s);
    now = until;
  }
}

TEST_F(Publishing, comes_back_at_another_time_than_others_that_failed_with_it) {
  std::set<Time> times;
  for (int i = 0; i <= 10; ++i) {
    PublisherPolicy one{{}};
    one.wanted({{"a", "1"}});
    for (int k = 0; k < 8; ++k) one.failed(one.next(now), Errc::remote_unavailable, now, i / 10.0);
    times.insert(one.next(now).until);
  }
  EXPECT_EQ(times.size(), 11U);
}

TEST_F(Publishing, removes_a_name_whose_put_may_have_come_about) {
  policy.wanted({{"a", "1"}});
  perform(1);
  const auto put = policy.next(now);
  ASSERT_EQ(put.what, What::put);
  keys["a"] = "1";  // and the answer was lost
  policy.failed(put, Errc::remote_unavailable, now, 0.5);
  policy.wanted({});
  now += 1s;
  EXPECT_EQ(perform(), "r");
  EXPECT_TRUE(keys.empty());
}

TEST_F(Publishing, bears_a_restart_of_lrpcd_and_withdraws_all_when_it_stays_away) {
  policy.wanted({{"a", "1"}});
  perform();
  policy.not_told(now);
  now += 4s;
  policy.not_told(now);
  EXPECT_EQ(perform(), "");
  now += 2s;
  policy.not_told(now);
  EXPECT_EQ(perform(), "r");
  policy.wanted({{"a", "1"}});
  EXPECT_EQ(perform(), "p");
}

TEST_F(Publishing, keeps_names_for_a_while_that_are_not_back_when_lrpcd_is) {
  policy.wanted({{"a", "1"}, {"b", "2"}, {"c", "3"}});
  perform();
  policy.not_told(now);
  now += 1s;
  policy.wanted({{"b", "2"}});
  EXPECT_EQ(perform(), "");
  EXPECT_EQ(policy.next(now).until, now + 4s);
  now += 1s;
  policy.wanted({{"a", "4"}, {"b", "2"}});
  EXPECT_EQ(perform(), "p");
  now += 3s;
  EXPECT_EQ(perform(), "r");
  EXPECT_EQ(keys, (PublisherPolicy::Names{{"a", "4"}, {"b", "2"}}));
  policy.wanted({{"b", "2"}});
  EXPECT_EQ(perform(), "r") << "not after a silence";
}

TEST_F(Publishing, takes_a_lease_that_a_put_does_not_find_for_lost) {
  policy.wanted({{"a", "1"}});
  perform(1);
  policy.failed(policy.next(now), Errc::name_unknown, now, 0);
  now += 1s;
  EXPECT_EQ(perform(), "gp");
}

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
  const Time now{std::chrono::hours(1)};
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
  suspects.report(0, kOwn, false, Time(1h));
  EXPECT_EQ(pick({kOwn, 12}, kOwn, 0, suspects, Time(1h), chance, 8), (std::vector<Host>{kOwn, 12}))
      << "under its address it cannot be imported at all";
}

TEST(Picking, remembers_a_bounded_number_of_reports) {
  Suspects suspects;
  for (Host host = 1; host <= Suspects::kMost + 1; ++host) suspects.report(0, host, false, Time(1h));
  EXPECT_FALSE(suspects.is_suspect(0, 1, Time(1h)));
  EXPECT_TRUE(suspects.is_suspect(0, Suspects::kMost + 1, Time(1h)));
}

TEST(Picking, one_users_reports_make_nobody_elses_forgotten) {
  Suspects suspects;
  suspects.report(1000, 1, false, Time(1h));
  suspects.report(1001, 1, false, Time(1h));
  for (Host host = 1; host <= 2 * Suspects::kMost; ++host) suspects.report(1002, host, false, Time(1h));
  EXPECT_TRUE(suspects.is_suspect(1000, 1, Time(1h)));
  EXPECT_TRUE(suspects.is_suspect(1001, 1, Time(1h)));
  EXPECT_FALSE(suspects.is_suspect(1002, Suspects::kMost, Time(1h)));
  EXPECT_TRUE(suspects.is_suspect(1002, 2 * Suspects::kMost, Time(1h)));
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

TEST(LastAnswersTest, are_given_with_their_age_and_not_when_they_are_too_old) {
  LastAnswers answers(10s);
  const Time now{std::chrono::hours(1)};
  answers.store("a", {{"a", 11, 1, {"I", 1, 0, 7}}}, now);
  EXPECT_EQ(answers.find("a", now + 10s)->age, 10s);
  EXPECT_FALSE(answers.find("a", now + 10s + 1ms));
  answers.store("a", {}, now);
  EXPECT_FALSE(answers.find("a", now)) << "a withdrawn name does not come back";
}

TEST(LastAnswersTest, are_bounded) {
  LastAnswers answers(10s);
  for (std::size_t i = 0; i <= LastAnswers::kMostNames; ++i)
    answers.store(std::to_string(i), {{"a", 11, 1, {"I", 1, 0, 7}}}, Time(1h));
  EXPECT_EQ(answers.size(), LastAnswers::kMostNames);
  EXPECT_FALSE(answers.find("0", Time(1h)));
}

TEST(LookupBudgetsTest, of_a_user_that_asks_in_a_loop_leave_those_of_others_whole) {
  LookupBudgets budgets({.burst = 3, .comes_back = 10ms});
  const Time now{std::chrono::hours(1)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budgets.spend(1, now));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(budgets.spend(1, now));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budgets.spend(2, now));
}

TEST(LookupBudgetsTest, come_back_with_time_up_to_the_whole) {
  LookupBudgets budgets({.burst = 3, .comes_back = 10ms});
  Time now{std::chrono::hours(1)};
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
  const Time now{std::chrono::hours(1)};
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
