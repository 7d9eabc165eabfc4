// The arithmetic of the scenario matrix: which fixed strategy was the best, and how the adaptive gate compares with it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/row.h"

namespace lrpc::bench {

/// The bars: the highest acceptable ratio of the adaptive gate's figure to the figure named.
inline constexpr double kMedianBar = 1.25;      ///< The best fixed strategy's median.
inline constexpr double kP99Bar = 2;            ///< The best fixed strategy's p99.
inline constexpr double kPlainMeanBar = 1.1;    ///< Plain futexes' mean, with hogs.
inline constexpr double kPlainP99Bar = 1.5;     ///< Plain futexes' p99, with hogs.
inline constexpr double kThirdPartyBar = 1.05;  ///< A third party's p99 with plain futexes instead of us.

/// The index of the smallest median; a number always beats NaN. Precondition: `medians` is not empty.
[[nodiscard]] std::size_t index_of_best(std::span<const double> medians) noexcept;

/// How the adaptive gate did in one cell.
struct Verdict {
  double median_ratio = 0;
  double p99_ratio = 0;
  std::optional<double> plain_mean_ratio = {};  ///< Only where plain futexes ran.
  std::optional<double> plain_p99_ratio = {};

  [[nodiscard]] bool median_met() const noexcept { return median_ratio <= kMedianBar; }
  [[nodiscard]] bool p99_met() const noexcept { return p99_ratio <= kP99Bar; }
  [[nodiscard]] bool plain_mean_met() const noexcept { return !plain_mean_ratio || *plain_mean_ratio <= kPlainMeanBar; }
  [[nodiscard]] bool plain_p99_met() const noexcept { return !plain_p99_ratio || *plain_p99_ratio <= kPlainP99Bar; }
  [[nodiscard]] bool all_met() const noexcept {
    return median_met() && p99_met() && plain_mean_met() && plain_p99_met();
  }
  /// "median p99 mean/f p99/f": the bars that were missed; empty if none was.
  [[nodiscard]] std::string missed() const;
};
[[nodiscard]] Verdict judge(const Figures& adaptive, const Figures& best, const std::optional<Figures>& plain);

/// The verdict on a cell, kept for the summary.
struct JudgedCell {
  std::string name;
  Verdict verdict;
};
/// "108 cells: median met in 100, p99 in 99, ...", and the `worst` cells of each bar, one line each.
[[nodiscard]] std::vector<std::string> summary(std::span<const JudgedCell> cells, std::size_t worst);

}  // namespace lrpc::bench
