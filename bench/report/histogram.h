// The times of single calls when they are too many to keep: a histogram of fixed size, and their exact sum.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lrpc::bench {

/// Counts values (ticks) in buckets whose width is at most 1/128 of the value, so that a quantile is off by 0.4 % at
/// most. The sum, and so the mean, is exact. Valid when zeroed, so it may lie in Shared.
class Histogram {
 public:
  void add(std::uint64_t value) noexcept {
    ++counts_[bucket(value)];
    sum_ += value;
    ++count_;
    if (value > max_) max_ = value;
  }
  void add(const Histogram& other) noexcept;
  void clear() noexcept { *this = Histogram{}; }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  /// NaN if there are no values.
  [[nodiscard]] double mean() const noexcept;
  /// The middle of the bucket that holds the q-quantile by nearest rank. NaN if there are no values.
  [[nodiscard]] double quantile(double q) const noexcept;

 private:
  static constexpr unsigned kBits = 7;  ///< Each value below 2^(kBits + 1) has its own bucket.
  static constexpr std::size_t kPerOctave = std::size_t{1} << kBits;
  static constexpr unsigned kOctaves = 40;  ///< The last bucket also takes all larger values (hours).

  static std::size_t bucket(std::uint64_t value) noexcept {
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    if (width <= kBits + 1) return static_cast<std::size_t>(value);
    const unsigned shift = width - (kBits + 1);
    if (shift >= kOctaves) return kBuckets - 1;
    return shift * kPerOctave + static_cast<std::size_t>(value >> shift);
  }
  static double middle_of(std::size_t bucket) noexcept;

  static constexpr std::size_t kBuckets = (kOctaves + 1) * kPerOctave;
  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint64_t sum_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace lrpc::bench
