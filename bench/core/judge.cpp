#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"

namespace lrpc::bench {
namespace {

/// One bar over all cells: to how many it applies, how many meet it, and which ratios are the highest.
std::string line_of(std::string_view what, double bar, std::span<const JudgedCell> cells, std::size_t worst,
                    std::optional<double> (*value)(const Verdict&)) {
  std::vector<std::pair<double, std::string_view>> ratios;
  for (const auto& cell : cells)
    if (const auto ratio = value(cell.verdict)) ratios.emplace_back(*ratio, cell.name);
  if (ratios.empty()) return fmt::format("{} <= {:g}: no cell has it.", what, bar);
  std::stable_sort(ratios.begin(), ratios.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const auto met = std::count_if(ratios.begin(), ratios.end(), [bar](const auto& r) { return r.first <= bar; });
  std::string line = fmt::format("{} <= {:g}: {} of {} cells.", what, bar, met, ratios.size());
  line += " Highest:";
  for (std::size_t i = 0; i < std::min(worst, ratios.size()); ++i)
    line += fmt::format("{} {} {}", i == 0 ? "" : ",", ratios[i].second, ratio(ratios[i].first));
  return line + ".";
}

}  // namespace

std::size_t index_of_best(std::span<const double> medians) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < medians.size(); ++i)
    if (medians[i] < medians[best] || std::isnan(medians[best])) best = i;
  return best;
}

std::string Verdict::missed() const {
  MissedBars bars;
  bars.add(!median_met(), "median");
  bars.add(!p99_met(), "p99");
  bars.add(!plain_mean_met(), "mean/f");
  bars.add(!plain_p99_met(), "p99/f");
  return bars.names();
}

Verdict judge(const Figures& adaptive, const Figures& best, const std::optional<Figures>& plain) {
  Verdict verdict{adaptive.median / best.median, adaptive.p99 / best.p99};
  if (plain) {
    verdict.plain_mean_ratio = adaptive.mean / plain->mean;
    verdict.plain_p99_ratio = adaptive.p99 / plain->p99;
  }
  return verdict;
}

std::vector<std::string> summary(std::span<const JudgedCell> cells, std::size_t worst) {
  using Ratio = std::optional<double>;
  const auto all_met = std::count_if(cells.begin(), cells.end(), [](const auto& c) { return c.verdict.all_met(); });
  return {
      fmt::format("{} cells, {} within every bar.", cells.size(), all_met),
      line_of("median to best fixed", kMedianBar, cells, worst,
              [](const Verdict& v) -> Ratio { return v.median_ratio; }),
      line_of("p99 to best fixed", kP99Bar, cells, worst, [](const Verdict& v) -> Ratio { return v.p99_ratio; }),
      line_of("mean to plain futexes", kPlainMeanBar, cells, worst,
              [](const Verdict& v) { return v.plain_mean_ratio; }),
      line_of("p99 to plain futexes", kPlainP99Bar, cells, worst, [](const Verdict& v) { return v.plain_p99_ratio; })};
}

}  // namespace lrpc::bench
