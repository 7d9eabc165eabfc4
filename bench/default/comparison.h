// The arithmetic of `lrpc-bench default`: which fixed gate was best in a situation, how the default compares with it,
// and which bars it misses.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/judge.h"
#include "core/ticks.h"
#include "fresh_run.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "situation.h"

namespace lrpc::bench {

struct NamedGate {
  shim::Gate gate;
  std::string_view name;
};
/// The default, then the fixed ones; the last is our own plain futexes.
inline constexpr std::array<NamedGate, 4> kDefaultAndFixed{{{shim::Gate::adaptive, "default"},
                                                            {shim::Gate::exchange, "exchange"},
                                                            {shim::Gate::handoff, "handoff"},
                                                            {shim::Gate::sleep, "sleep"}}};

/// The bars, besides kMedianBar, kP99Bar, kPlainMeanBar and kPlainP99Bar. One client with the machine to itself:
inline constexpr double kGoodFactor = 1.5;         ///< A window up to that is good: times the best gate's median.
inline constexpr double kBadShareBar = 1;          ///< Back to back: per cent of a run's windows.
inline constexpr double kFirstGoodBar = 20;        ///< Back to back: when the first good window begins, in ms.
inline constexpr std::size_t kRunsForOneBad = 20;  ///< One run in so many may miss these two.
inline constexpr double kShortThinkMeanBar = 1.5;  ///< Think time of 10 µs or less: times the best gate's mean.
inline constexpr double kLongThinkMeanBar = 1.15;  ///< Longer, or asleep: times the plain futexes' mean.
/// Beside others:
inline constexpr double kThirdPartyMeanBar = 1.05;  ///< A third party's mean, to that beside plain futexes.
inline constexpr double kThirdPartyP99Bar = 1.2;    ///< The same for its p99.
inline constexpr double kHogBar = 0.95;             ///< What a hog gets, at least, to that beside plain futexes.
inline constexpr double kLongCallNs = 20e6;         ///< No call as long, unless plain futexes have one.

/// All runs of one gate in a situation.
struct Runs {
  std::vector<FreshRun> runs;

  /// The median over the runs of what `figure` says of each; those that have none do not count.
  template <class Figure>
  [[nodiscard]] double middle(Figure&& figure) const {
    std::vector<double> figures;
    for (const FreshRun& run : runs) figures.push_back(figure(run));
    return middle_of(std::move(figures));
  }
  /// Of the calls: medians over the runs, in nanoseconds. `min` and `max` are of all calls.
  [[nodiscard]] Timing timing(const TickClock& clock) const;

 private:
  static double middle_of(std::vector<double> figures);
};
using AllRuns = std::array<Runs, kDefaultAndFixed.size()>;

/// Of the windows of a run in which there were calls: how many were not good, in per cent.
[[nodiscard]] double bad_share(const FreshRun& run, double good);
/// When the first good one began, in ms. NaN: none was good.
[[nodiscard]] double first_good(const FreshRun& run, double good);

struct Comparison {
  Timing ours;
  std::size_t best = 0;   ///< Which of kDefaultAndFixed has the lowest median of the fixed ones.
  Timing fixed;           ///< Of that one.
  double worst_mean = 0;  ///< Of our runs, in ns.
  double mean_ratio = 0;  ///< To the lowest mean of the fixed gates.
  double good = 0;        ///< What a window may take, in ns.
  double bad_share = 0;   ///< Median over our runs, in per cent.
  double worst_bad_share = 0;
  std::ptrdiff_t bad_runs = 0;       ///< Of ours, those in which more than kBadShareBar of the windows are bad.
  std::ptrdiff_t best_bad_runs = 0;  ///< The same of the best fixed gate's: what the host's disturbances make of it.
  double first_good = 0;             ///< Median over our runs, in ms.
  /// What hogs get, or the mean of a third party, to the same beside plain futexes.
  std::optional<double> others = {};
  std::string missed;  ///< The bars that were missed, by name; empty if none was.
};
[[nodiscard]] Comparison compare(const Situation& situation, const AllRuns& all, const TickClock& clock);

}  // namespace lrpc::bench
