// What is to be published next: without etcd and without time.
#include "publish/publisher_policy.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

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
          policy.audited(keys.size());
          break;
        case What::put:
          done += 'p';
          EXPECT_LE(step.entries.size(), kMostOperations);
          for (const auto& entry : step.entries) keys[entry.key] = entry.value;
          policy.put_or_removed(step);
          break;
        case What::remove:
          done += 'r';
          EXPECT_LE(step.entries.size(), kMostOperations);
          for (const auto& entry : step.entries) keys.erase(entry.key);
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

  static PublisherPolicy::Names many(const std::string& begin, int count) {
    PublisherPolicy::Names names;
    for (int i = 0; i < count; ++i) names.emplace(begin + std::to_string(i), "v");
    return names;
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
  const auto names = many("n", 250);
  policy.wanted(names);
  EXPECT_EQ(perform(), "gppp");
  EXPECT_EQ(keys, names);
  policy.wanted({});
  EXPECT_EQ(perform(), "rrr");
  EXPECT_TRUE(keys.empty());
}

TEST_F(Publishing, cuts_them_into_smaller_transactions_where_etcd_takes_fewer_operations) {
  constexpr std::size_t kTakes = 100;  // and so many removals are one more
  int refused = 0;
  const auto settle = [&] {
    for (int i = 0; i < 100 && !policy.settled(); ++i) {
      const auto step = policy.next(now);
      if (step.what == What::wait) {
        now = step.until;
      } else if (step.entries.size() + (step.what == What::remove ? 1U : 0U) > kTakes) {
        ++refused;
        policy.failed(step, Errc::invalid_argument, now, 0);
      } else {
        perform(1);
      }
    }
  };
  policy.wanted(many("n", 250));
  settle();
  EXPECT_EQ(refused, 0);
  policy.wanted({});
  settle();
  EXPECT_TRUE(keys.empty());
  EXPECT_EQ(refused, 1) << "it does not try that again";
}

TEST_F(Publishing, tries_large_transactions_again_under_a_new_lease) {
  policy.wanted(many("n", 100));
  perform(1);
  policy.failed(policy.next(now), Errc::invalid_argument, now, 0);
  now = policy.next(now).until;
  EXPECT_EQ(perform(), "pp");
  lose_everything();
  now += 10s;
  EXPECT_EQ(perform(), "kgp");
}

TEST_F(Publishing, puts_a_new_name_after_one_transaction_of_removals_however_many_are_due) {
  policy.wanted(many("n", 1024));
  perform();
  policy.wanted({{"a", "1"}});
  EXPECT_EQ(perform(2), "rp");
  EXPECT_TRUE(keys.contains("a"));
  EXPECT_EQ(perform(), "rrrrrrrrrr");
  EXPECT_TRUE(policy.settled());
}

TEST_F(Publishing, replaces_many_names_in_transactions_that_take_turns) {
  const auto fresh = many("fresh", 250);
  policy.wanted(many("n", 250));
  perform();
  policy.wanted(fresh);
  EXPECT_EQ(perform(), "rprprp");
  EXPECT_EQ(keys, fresh);
}

TEST_F(Publishing, puts_and_removes_a_name_behind_others_that_are_replaced_each_time) {
  policy.wanted({{"y", "1"}});
  perform();
  for (int i = 0; i < 6; ++i) {  // two steps each time: too few for all
    auto names = many("n" + std::to_string(i) + ".", 300);
    names.emplace("z", "1");
    policy.wanted(names);
    perform(2);
  }
  EXPECT_TRUE(keys.contains("z"));
  EXPECT_FALSE(keys.contains("y"));
}

TEST_F(Publishing, keeps_its_lease_alive_between_removals_and_puts) {
  policy.wanted(many("n", 250));
  perform();
  policy.wanted(many("fresh", 250));
  for (const char* const steps : {"kr", "kp", "kr", "kp"}) {
    now += 10s;
    EXPECT_EQ(perform(2), steps);
  }
}

TEST_F(Publishing, removes_names_although_etcd_takes_no_new_ones) {
  policy.wanted(many("n", 250));
  perform();
  policy.wanted({{"a", "1"}});
  std::string done;
  for (int i = 0; i < 8; ++i) {
    const auto step = policy.next(now);
    if (step.what == What::wait) now = step.until;
    if (step.what == What::put) policy.failed(step, Errc::limit_reached, now, 0);
    if (step.what == What::remove) done += perform(1);
  }
  EXPECT_EQ(done, "rrr");
  EXPECT_EQ(keys.size(), 0U);
}

TEST_F(Publishing, bounds_the_names_that_may_be_there_while_etcd_takes_no_change) {
  policy.wanted({{"a", "1"}});
  perform();
  for (int i = 0; i < 100; ++i) {
    policy.wanted(many("n" + std::to_string(i) + "-", 100));
    const auto step = policy.next(now);
    if (step.what == What::wait)
      now = step.until;
    else if (step.what == What::keep_alive)
      policy.kept({step.lease, 30s}, now);
    else
      policy.failed(step, Errc::not_permitted, now, 0);
  }
  EXPECT_LE(policy.published(), 2 * kMostOperations);
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

}  // namespace
}  // namespace lrpc::directory
