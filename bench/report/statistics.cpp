#include "statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace lrpc::bench {

double quantile(std::span<const double> samples, double q) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(samples.begin(), samples.end());
  const auto count = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(q * count) - 1, 0.0, count - 1));
  std::nth_element(sorted.begin(), sorted.begin() + rank, sorted.end());
  return sorted[static_cast<std::size_t>(rank)];
}

double median(std::span<const double> samples) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

Figures figures_of(std::span<const double> samples) {
  return {.median = median(samples),
          .p99 = quantile(samples, 0.99),
          .min = quantile(samples, 0),
          .max = quantile(samples, 1),
          .calls = samples.size()};
}

Figures figures_of(const Histogram& counted, double ns) {
  return {.median = ns * counted.quantile(0.5),
          .p99 = ns * counted.quantile(0.99),
          .min = ns * counted.quantile(0),
          .max = ns * static_cast<double>(counted.max()),
          .calls = counted.count(),
          .mean = ns * counted.mean()};
}

std::vector<double> paired_ratios(std::span<const double> floor, std::span<const double> call) {
  assert(floor.size() == call.size() + 1);
  std::vector<double> ratios;
  ratios.reserve(call.size());
  for (std::size_t i = 0; i < call.size(); ++i) ratios.push_back(call[i] / ((floor[i] + floor[i + 1]) / 2));
  return ratios;
}

std::vector<double> paired_differences(std::span<const double> floor, std::span<const double> call) {
  assert(floor.size() == call.size() + 1);
  std::vector<double> differences;
  differences.reserve(call.size());
  for (std::size_t i = 0; i < call.size(); ++i) differences.push_back(call[i] - (floor[i] + floor[i + 1]) / 2);
  return differences;
}

}  // namespace lrpc::bench
