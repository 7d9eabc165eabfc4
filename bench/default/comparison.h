// The arithmetic of `lrpc-bench default`: which fixed gate was the best in a situation, how the default compares with
// it, and which bars it misses.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
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
/// The default, then the fixed gates; the last one is lrpc's plain futexes.
inline constexpr std::array<NamedGate, 4> kDefaultAndFixed{{{shim::Gate::adaptive, "default"},
                                                            {shim::Gate::exchange, "exchange"},
                                                            {shim::Gate::handoff, "handoff"},
                                                            {shim::Gate::sleep, "sleep"}}};

/// The bars, besides kMedianBar, kP99Bar, kPlainMeanBar and kPlainP99Bar. For one client with no other load:
inline constexpr double kGoodFactor = 1.5;         ///< A window is good if its median is at most this multiple of the
                                                   ///< best gate's.
inline constexpr double kBadShareBar = 1;          ///< Back to back: the highest share of windows that are not good in
                                                   ///< a run, in per cent.
inline constexpr double kFirstGoodBar = 20;        ///< Back to back: the latest start of the first good window, in ms.
inline constexpr std::size_t kRunsForOneBad = 20;  ///< One run in this many may miss the previous two bars.
inline constexpr double kShortThinkMeanBar = 1.5;  ///< Think time of at most 10 µs: the highest ratio to the
                                                   ///< lowest mean of the fixed gates.
inline constexpr double kLongThinkMeanBar = 1.15;  ///< Longer think time, or sleep: the highest ratio to the plain
                                                   ///< futexes' mean.
/// Beside other loads:
inline constexpr double kThirdPartyMeanBar = 1.05;  ///< A third party's mean, relative to that beside plain futexes.
inline constexpr double kThirdPartyP99Bar = 1.2;    ///< The same for its p99.
inline constexpr double kHogBar = 0.95;             ///< The least processor time of a hog, relative to that beside
                                                    ///< plain futexes.
inline constexpr double kLongCallNs = 20e6;         ///< Beside hogs no call may take longer, unless one by plain
                                                    ///< futexes does.

/// All runs of one gate in a situation.
struct Runs {
  std::vector<FreshRun> runs;

  /// The median over the runs of `figure(run)`, without NaN.
  template <class Figure>
  [[nodiscard]] double middle(Figure&& figure) const {
    std::vector<double> figures;
    for (const FreshRun& run : runs) figures.push_back(figure(run));
    return middle_of(std::move(figures));
  }
  /// The calls: medians over the runs, in nanoseconds; but `min` and `max` are over all calls.
  [[nodiscard]] Figures timing(const TickClock& clock) const;

 private:
  static double middle_of(std::vector<double> figures);
};
using AllRuns = std::array<Runs, kDefaultAndFixed.size()>;

/// Of a run's windows with calls, the share that is not good, in per cent; 100 if there are no such windows.
[[nodiscard]] double bad_share(const FreshRun& run, double good);
/// When the first good window began, in ms. NaN if none was good.
[[nodiscard]] double first_good(const FreshRun& run, double good);

struct Comparison {
  Figures ours;
  std::size_t best = 0;   ///< Index in kDefaultAndFixed of the fixed gate with the lowest median.
  Figures fixed;          ///< That gate's.
  double worst_mean = 0;  ///< The worst of our runs, in ns.
  double mean_ratio = 0;  ///< Our mean to the lowest mean of the fixed gates.
  double good = 0;        ///< The longest median of a good window, in ns.
  double bad_share = 0;   ///< Median over our runs, in per cent.
  double worst_bad_share = 0;
  std::ptrdiff_t bad_runs = 0;       ///< Our runs in which more than kBadShareBar of the windows are bad.
  std::ptrdiff_t best_bad_runs = 0;  ///< The same for the best fixed gate: shows what the host's disturbances
                                     ///< contribute.
  double first_good = 0;             ///< Median over our runs, in ms.
  /// The hogs' processor time, or a third party's mean, relative to the same beside plain futexes.
  std::optional<double> others = {};
  std::string missed;  ///< The bars that were missed, by name; empty if none was.
};
[[nodiscard]] Comparison compare(const Situation& situation, const AllRuns& all, const TickClock& clock);

}  // namespace lrpc::bench
