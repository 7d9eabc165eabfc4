// Backs off, for a number of tries, from something that did not pay.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lrpc::shim {

/// Remembers that something did not pay, and for how many tries not to try it again. Forgets in bounded time: the
/// penalty doubles up to kMax and is gone at the first success. What is tried is cheap, but for postpone().
/// (Where time passes between two tries, see Distrust.)
class BackOff {
 public:
  static constexpr std::uint16_t kFirst = 64;
  static constexpr std::uint16_t kMax = 1024;

  /// Whether to try now; counts one down if not.
  [[nodiscard]] bool try_now() noexcept {
    if (skip_ == 0) return true;
    --skip_;
    return false;
  }
  void succeeded() noexcept { failures_ = penalty_ = 0; }
  /// One failure is an accident, the second in a row a reason to stop for a while.
  void failed() noexcept {
    if (++failures_ < 2) return;
    penalty_ = penalty_ == 0 ? kFirst : std::min<std::uint16_t>(static_cast<std::uint16_t>(penalty_ * 2), kMax);
    skip_ = penalty_;
    failures_ = 1;
  }
  /// Not within the next `tries`.
  void postpone(std::uint16_t tries) noexcept { skip_ = std::max(skip_, tries); }

 private:
  std::uint16_t skip_ = 0;
  std::uint16_t penalty_ = 0;
  std::uint16_t failures_ = 0;
};

}  // namespace lrpc::shim
