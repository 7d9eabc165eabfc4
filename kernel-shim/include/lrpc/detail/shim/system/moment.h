// Times by ticks(), for code that reads no clock.
#pragma once

#include <cstdint>

namespace lrpc::shim {

/// A time by ticks(), and the rate to count in microseconds from it. Policies take it as an input: they read no clock.
struct Moment {
  std::uint64_t ticks = 0;
  std::uint64_t ticks_per_us = 1;

  /// The longest that anything is put off. A time further ahead was noted before the counter restarted (a machine that
  /// was suspended or moved), so it has passed long ago.
  static constexpr std::uint64_t kFarUs = 60'000'000;

  [[nodiscard]] constexpr std::uint64_t after(std::uint64_t us) const noexcept { return ticks + us * ticks_per_us; }
  /// Microseconds since `then`; 0 if that is in the future (another processor's counter may be a little ahead).
  [[nodiscard]] constexpr std::uint64_t since(std::uint64_t then) const noexcept {
    if (ticks > then) return (ticks - then) / ticks_per_us;
    return then > after(kFarUs) ? kFarUs : 0;
  }
  /// Whether `then` is in the future. It was at most kFarUs ahead when it was noted.
  [[nodiscard]] constexpr bool before(std::uint64_t then) const noexcept {
    return ticks < then && then <= after(kFarUs);
  }
};

}  // namespace lrpc::shim
