#include "default/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lrpc::bench {
namespace {

using namespace std::chrono_literals;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const TickClock kNanoseconds;  // a tick is a nanosecond

/// 99 calls that take `ns`, and one that takes `last`.
FreshRun run_of(std::uint64_t ns, std::vector<double> windows = {}, std::uint64_t last = 0) {
  FreshRun run;
  for (int i = 0; i < 99; ++i) run.calls.add(ns);
  run.calls.add(last != 0 ? last : ns);
  run.windows = windows.empty() ? std::vector<double>{static_cast<double>(ns)} : std::move(windows);
  return run;
}
/// The default takes `ours`, exchange 100, handoff 200, plain futexes 300.
AllRuns all_of(std::vector<FreshRun> ours) {
  AllRuns all;
  all[0].runs = std::move(ours);
  for (std::uint64_t i = 1; i < all.size(); ++i) all[i].runs = {run_of(100 * i)};
  return all;
}
std::string missed(const Situation& situation, const AllRuns& all) {
  return compare(situation, all, kNanoseconds).missed;
}

TEST(Comparison, is_with_the_fixed_gate_of_the_lowest_median) {
  AllRuns all = all_of({run_of(110)});
  const Comparison first = compare({}, all, kNanoseconds);
  EXPECT_EQ(kDefaultAndFixed[first.best].name, "exchange");
  EXPECT_EQ(first.good, 150);
  EXPECT_NEAR(first.mean_ratio, 1.1, 0.01);
  EXPECT_EQ(first.missed, "");
  all[1].runs = {run_of(1'000)};
  EXPECT_EQ(kDefaultAndFixed[compare({}, all, kNanoseconds).best].name, "handoff");
}

TEST(Comparison, takes_the_middle_of_the_runs_and_the_longest_of_all_calls) {
  Runs runs;
  runs.runs = {run_of(100), run_of(120), run_of(140, {}, 5'000)};
  const Figures timing = runs.timing(kNanoseconds);
  EXPECT_EQ(timing.median, 120);
  EXPECT_EQ(timing.max, 5'000);
  EXPECT_EQ(timing.min, 100);
  EXPECT_EQ(timing.calls, 300U);
  const auto figure = [](const FreshRun& run) { return run.calls.max() == 120 ? kNone : run.calls.quantile(0.5); };
  EXPECT_EQ(runs.middle(figure), 120) << "a run without a figure does not count";
  runs.runs[0] = run_of(120);
  EXPECT_EQ(runs.middle(figure), 140);
}

TEST(Comparison, windows_without_calls_are_neither_good_nor_bad) {
  const FreshRun run = run_of(100, {kNone, 300, 100, 100, 300});
  EXPECT_EQ(bad_share(run, 150), 50);
  EXPECT_EQ(first_good(run, 150), 20);
  EXPECT_TRUE(std::isnan(first_good(run, 50)));
  EXPECT_EQ(bad_share(run_of(100, {kNone}), 150), 100) << "a run without any call is a bad one";
}

TEST(Comparison, every_situation_has_the_bars_of_median_and_p99) {
  const Situation two{.threads = 2};
  EXPECT_EQ(missed(two, all_of({run_of(125)})), "");
  EXPECT_EQ(missed(two, all_of({run_of(127)})), "median");
  FreshRun rough = run_of(100);
  for (int i = 0; i < 2; ++i) rough.calls.add(1'000);
  EXPECT_EQ(missed(two, all_of({rough})), "p99");
}

TEST(Comparison, back_to_back_one_run_in_twenty_may_have_bad_windows_or_begin_late) {
  const FreshRun good = run_of(100);
  const FreshRun bad = run_of(100, {100, 160});
  const FreshRun late = run_of(100, {kNone, kNone, kNone, 100});
  std::vector<FreshRun> runs(19, good);
  runs.push_back(bad);
  EXPECT_EQ(missed({}, all_of(runs)), "");
  runs[0] = bad;
  EXPECT_EQ(missed({}, all_of(runs)), "windows");
  EXPECT_EQ(missed({}, all_of({late})), "first");
  EXPECT_EQ(missed({.threads = 2}, all_of({bad, late})), "") << "not with two callers";
  AllRuns all = all_of(runs);
  all[1].runs = {bad, good, bad, bad};
  EXPECT_EQ(compare({}, all, kNanoseconds).bad_runs, 2);
  EXPECT_EQ(compare({}, all, kNanoseconds).best_bad_runs, 3);
}

TEST(Comparison, one_client_that_pauses_has_a_bar_for_its_mean) {
  const FreshRun long_tail = run_of(100, {}, 8'000);     // mean 179
  const FreshRun longer_tail = run_of(100, {}, 30'000);  // mean 399
  EXPECT_EQ(missed({.think = 10us}, all_of({run_of(110)})), "");
  EXPECT_EQ(missed({.think = 10us}, all_of({long_tail})), "mean") << "over 1.5 times the best gate's";
  EXPECT_EQ(missed({.think = 11us}, all_of({long_tail})), "") << "plain futexes' mean is 300";
  EXPECT_EQ(missed({.sleep = 1us}, all_of({longer_tail})), "mean");
}

TEST(Comparison, beside_hogs_it_is_held_against_plain_futexes_too) {
  const Situation beside{.hogs = 1};
  AllRuns all = all_of({run_of(110, {}, 25'000'000)});
  for (Runs& runs : all) runs.runs[0].hogs = 1;
  EXPECT_EQ(missed(beside, all), "mean/f max");
  all[3].runs = {run_of(300, {}, 30'000'000)};
  all[3].runs[0].hogs = 1;
  EXPECT_EQ(missed(beside, all), "") << "plain futexes have such a call, too";
  all[0].runs[0].hogs = 0.9;
  EXPECT_EQ(missed(beside, all), "hogs");
  EXPECT_NEAR(compare(beside, all, kNanoseconds).others.value(), 0.9, 0.001);
}

TEST(Comparison, what_a_third_party_takes_is_held_against_the_same_beside_plain_futexes) {
  const auto all_with = [](std::uint64_t mean, std::uint64_t longest) {
    AllRuns all = all_of({run_of(100)});
    for (Runs& runs : all) {
      for (int i = 0; i < 98; ++i) runs.runs[0].third_party.add(&runs == &all[0] ? mean : 1'000);
      for (int i = 0; i < 2; ++i) runs.runs[0].third_party.add(&runs == &all[0] ? longest : 1'000);
    }
    return all;
  };
  EXPECT_EQ(missed({.third_party = true}, all_with(1'040, 1'040)), "");
  EXPECT_EQ(missed({.third_party = true}, all_with(1'100, 1'100)), "others");
  EXPECT_EQ(missed({.third_party = true}, all_with(1'000, 1'300)), "others-p99");
  EXPECT_EQ(missed({.build = true}, all_with(1'000, 1'300)), "") << "too few files for a p99";
  EXPECT_EQ(missed({.build = true}, all_with(1'100, 1'100)), "others");
  EXPECT_EQ(missed({}, all_with(1'100, 1'100)), "");
}

}  // namespace
}  // namespace lrpc::bench
