#include "comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/statistics.h"
#include "report/table.h"

namespace lrpc::bench {
namespace {

/// Whether one client with one thread calls one server anywhere, without other loads. Everything except its pauses
/// between two calls (`think`, `sleep`) must be as in a default Situation.
bool is_alone(Situation situation) {
  situation.think = {};
  situation.sleep = {};
  return situation == Situation{.name = situation.name};
}

void judge_alone(const Situation& situation, const Comparison& all, const Runs& ours, const Figures& plain,
                 MissedBars& missed) {
  const bool pauses = situation.think.count() != 0 || situation.sleep.count() != 0;
  if (pauses) {
    const bool is_short = situation.sleep.count() == 0 && situation.think <= std::chrono::microseconds(10);
    missed.add(is_short ? all.mean_ratio > kShortThinkMeanBar : all.ours.mean > kLongThinkMeanBar * plain.mean, "mean");
    return;
  }
  const auto may_miss = static_cast<std::ptrdiff_t>(ours.runs.size() / kRunsForOneBad);
  missed.add(all.bad_runs > may_miss, "windows");
  const auto is_late = [&](const FreshRun& run) { return !(first_good(run, all.good) <= kFirstGoodBar); };
  missed.add(std::ranges::count_if(ours.runs, is_late) > may_miss, "first");
}

}  // namespace

double Runs::middle_of(std::vector<double> figures) {
  std::erase_if(figures, [](double figure) { return std::isnan(figure); });
  return median(figures);
}

Figures Runs::timing(const TickClock& clock) const {
  const auto of_runs = [&](auto field) {
    return middle([&](const FreshRun& run) { return figures_of(run.calls, clock.ns(1)).*field; });
  };
  Figures timing{.median = of_runs(&Figures::median), .p99 = of_runs(&Figures::p99), .mean = of_runs(&Figures::mean)};
  timing.min = std::numeric_limits<double>::infinity();
  for (const FreshRun& run : runs) {
    const Figures one = figures_of(run.calls, clock.ns(1));
    timing.min = std::min(timing.min, one.min);
    timing.max = std::max(timing.max, one.max);
    timing.calls += one.calls;
  }
  return timing;
}

double bad_share(const FreshRun& run, double good) {
  std::size_t all = 0;
  std::size_t bad = 0;
  for (const double window : run.windows) {
    all += std::isnan(window) ? 0U : 1U;
    bad += window > good ? 1U : 0U;
  }
  return all == 0 ? 100 : 100.0 * static_cast<double>(bad) / static_cast<double>(all);
}

double first_good(const FreshRun& run, double good) {
  const auto found = std::ranges::find_if(run.windows, [&](double window) { return window <= good; });
  if (found == run.windows.end()) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>((found - run.windows.begin()) * FreshRun::kWindow.count());
}

Comparison compare(const Situation& situation, const AllRuns& all, const TickClock& clock) {
  std::array<Figures, std::tuple_size_v<AllRuns>> timings;
  std::ranges::transform(all, timings.begin(), [&](const Runs& runs) { return runs.timing(clock); });
  const Runs& ours = all.front();
  const Runs& asleep = all.back();
  const Figures& plain = timings.back();

  Comparison result;
  result.ours = timings.front();
  double least_mean = std::numeric_limits<double>::infinity();
  std::vector<double> medians;
  for (std::size_t i = 1; i < all.size(); ++i) {
    medians.push_back(timings[i].median);
    least_mean = std::min(least_mean, timings[i].mean);
  }
  result.best = 1 + index_of_best(medians);
  result.fixed = timings[result.best];
  result.mean_ratio = result.ours.mean / least_mean;
  result.good = kGoodFactor * result.fixed.median;
  result.bad_share = ours.middle([&](const FreshRun& run) { return bad_share(run, result.good); });
  result.first_good = ours.middle([&](const FreshRun& run) { return first_good(run, result.good); });
  for (const FreshRun& run : ours.runs) {
    result.worst_mean = std::max(result.worst_mean, clock.ns(1) * run.calls.mean());
    result.worst_bad_share = std::max(result.worst_bad_share, bad_share(run, result.good));
  }

  const auto bad_runs = [&](const Runs& runs) {
    return std::ranges::count_if(runs.runs, [&](auto& run) { return bad_share(run, result.good) > kBadShareBar; });
  };
  result.bad_runs = bad_runs(ours);
  result.best_bad_runs = bad_runs(all[result.best]);

  const bool beside_hogs = situation.hogs != 0;
  MissedBars missed;
  const Verdict verdict = judge(result.ours, result.fixed, beside_hogs ? std::optional(plain) : std::nullopt);
  missed.add(!verdict.all_met(), verdict.missed());
  if (is_alone(situation)) judge_alone(situation, result, ours, plain, missed);
  const auto to_asleep = [&](auto&& figure) { return ours.middle(figure) / asleep.middle(figure); };
  if (beside_hogs) {
    missed.add(result.ours.max > kLongCallNs && plain.max <= kLongCallNs, "max");
    result.others = to_asleep([](const FreshRun& run) { return run.hogs; });
    missed.add(*result.others < kHogBar, "hogs");
  }
  if (situation.third_party || situation.build) {
    result.others = to_asleep([](const FreshRun& run) { return run.third_party.mean(); });
    missed.add(*result.others > kThirdPartyMeanBar, "others");
  }
  if (situation.third_party) {  // a build yields too few pieces
    const double p99 = to_asleep([](const FreshRun& run) { return run.third_party.quantile(0.99); });
    missed.add(p99 > kThirdPartyP99Bar, "others-p99");
  }
  result.missed = missed.names();
  return result;
}

}  // namespace lrpc::bench
