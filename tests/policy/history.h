// How long calls took, and when they were made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine.h"

namespace lrpc::simulated {

struct Calls {
  std::uint64_t count = 0;
  std::uint64_t time = 0;
  std::uint64_t longest = 0;
  void note(std::uint64_t took) noexcept {
    ++count;
    time += took;
    longest = std::max(longest, took);
  }
  Calls& operator+=(const Calls& other) noexcept {
    count += other.count;
    time += other.time;
    longest = std::max(longest, other.longest);
    return *this;
  }
  [[nodiscard]] double mean_us() const {
    return count == 0 ? 1e9 : static_cast<double>(time) / kPerUs / static_cast<double>(count);
  }
};

/// Calls by the time at which they began, in bins of kBin. Times count from `from`.
class History {
 public:
  static constexpr std::uint64_t kBin = us(1'000);

  explicit History(std::uint64_t from) noexcept : from_(from) {}
  /// A call that is under way at `when` only counts as a candidate for the longest.
  void forgive(std::uint64_t when) noexcept { forgiven_ = when; }
  void note(std::uint64_t began, std::uint64_t took) {
    longest_ = std::max(longest_, took);
    if (began < forgiven_ && forgiven_ < began + took) return;
    const std::size_t bin = (began - from_) / kBin;
    if (bin >= bins_.size()) bins_.resize(bin + 1);
    bins_[bin].note(took);
  }
  void add(const History& other) {
    bins_.resize(std::max(bins_.size(), other.bins_.size()));
    for (std::size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
    longest_ = std::max(longest_, other.longest_);
  }
  /// The calls of the bins that begin in [from, to).
  [[nodiscard]] Calls between(std::uint64_t from, std::uint64_t to) const {
    Calls all;
    for (std::size_t i = from / kBin; i < std::min<std::size_t>(to / kBin, bins_.size()); ++i) all += bins_[i];
    return all;
  }
  [[nodiscard]] std::uint64_t longest() const noexcept { return longest_; }

 private:
  std::uint64_t from_;
  std::uint64_t forgiven_ = 0;
  std::uint64_t longest_ = 0;
  std::vector<Calls> bins_;
};

}  // namespace lrpc::simulated
