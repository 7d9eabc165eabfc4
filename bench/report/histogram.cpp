#include "histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lrpc::bench {

void Histogram::add(const Histogram& other) noexcept {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  sum_ += other.sum_;
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

double Histogram::mean() const noexcept {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(sum_) / static_cast<double>(count_);
}

double Histogram::middle_of(std::size_t bucket) noexcept {
  if (bucket < 2 * kPerOctave) return static_cast<double>(bucket);
  const std::size_t shift = bucket / kPerOctave - 1;
  const double low = std::ldexp(static_cast<double>(bucket - shift * kPerOctave), static_cast<int>(shift));
  return low + (std::ldexp(1, static_cast<int>(shift)) - 1) / 2;
}

double Histogram::quantile(double q) const noexcept {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<double>(count_);
  const auto rank = static_cast<std::uint64_t>(std::clamp(std::ceil(q * count), 1.0, count));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(middle_of(i), static_cast<double>(max_));
  }
  return static_cast<double>(max_);
}

}  // namespace lrpc::bench
