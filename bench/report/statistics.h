// Condenses the samples of a row: quantiles, and the paired ratios of call blocks to their floor blocks.
#pragma once

#include <span>
#include <vector>

#include "histogram.h"
#include "row.h"

namespace lrpc::bench {

/// The q-quantile by nearest rank: the smallest sample such that at least the fraction q of all samples does not exceed
/// it. 0 ≤ q ≤ 1. NaN if there are no samples.
[[nodiscard]] double quantile(std::span<const double> samples, double q);
/// The middle sample, or the mean of the two middle ones. NaN if there are no samples.
[[nodiscard]] double median(std::span<const double> samples);

/// The figures of samples in a row's unit; each sample counts as one call.
[[nodiscard]] Figures figures_of(std::span<const double> samples);
/// The same of counted values, each of which is so many times `ns` nanoseconds; with their mean.
[[nodiscard]] Figures figures_of(const Histogram& counted, double ns = 1);

/// Call block i ran between floor blocks i and i + 1; its ratio is to their mean. Precondition: floor.size() ==
/// call.size() + 1.
[[nodiscard]] std::vector<double> paired_ratios(std::span<const double> floor, std::span<const double> call);

/// The same as differences, call minus floor.
[[nodiscard]] std::vector<double> paired_differences(std::span<const double> floor, std::span<const double> call);

}  // namespace lrpc::bench
