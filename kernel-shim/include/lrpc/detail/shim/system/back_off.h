// Backs off, for a number of tries, from something that failed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lrpc::shim {

/// Remembers that something failed, and for how many tries to skip it. The penalty doubles up to kMax, and the first
/// success ends it, so failures are forgotten in bounded time. For things that are cheap to try; for others use
/// postpone(). (If time passes between two tries, use Distrust.)
class BackOff {
 public:
  static constexpr std::uint16_t kFirst = 64;
  static constexpr std::uint16_t kMax = 1024;

  /// Whether to try now. If not, this counts as one skipped try.
  [[nodiscard]] bool try_now() noexcept {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void succeeded() noexcept { failures_ = penalty_ = 0; }
  /// One failure is an accident; after a second one in a row, tries are skipped.
  void failed() noexcept {
    if (++failures_ < 2) return;
    penalty_ = penalty_ == 0 ? kFirst : std::min<std::uint16_t>(static_cast<std::uint16_t>(penalty_ * 2), kMax);
    skip_ = penalty_;
    failures_ = 1;
  }
  /// Skips the next `tries`.
  void postpone(std::uint16_t tries) noexcept { skip_ = std::max(skip_, tries); }

 private:
  std::uint16_t skip_ = 0;
  std::uint16_t penalty_ = 0;
  std::uint16_t failures_ = 0;
};

}  // namespace lrpc::shim
