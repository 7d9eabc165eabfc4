// The numbers of one flow as its receiver sees them.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace lrpc::netrpc::composite {

/// Which of the latest numbers have been seen.
class Window {
 public:
  static constexpr std::uint64_t kSize = 1024;
  /// False: it has been seen, or is so old that it may have been.
  bool add(std::uint64_t number) noexcept {
    if (number == 0 || (highest_ >= kSize && number <= highest_ - kSize)) return false;
    if (number > highest_) {
      if (number - highest_ >= kSize) seen_.fill(0);
      for (; highest_ < number && number - highest_ < kSize; clear(highest_)) ++highest_;
      highest_ = number;
      clear(number);
    }
    std::uint64_t& word = seen_[number / 64 % seen_.size()];
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    return (std::exchange(word, word | bit) & bit) == 0;
  }

  /// As if it had never come.
  void remove(std::uint64_t number) noexcept {
    if (number <= highest_ && highest_ - number < kSize) clear(number);
  }

 private:
  void clear(std::uint64_t number) noexcept { seen_[number / 64 % seen_.size()] &= ~(std::uint64_t{1} << number % 64); }
  std::uint64_t highest_ = 0;
  std::array<std::uint64_t, kSize / 64> seen_{};
};

}  // namespace lrpc::netrpc::composite
