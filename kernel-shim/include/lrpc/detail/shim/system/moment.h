// Times by ticks(), for what has no clock of its own.
#pragma once

#include <cstdint>

namespace lrpc::shim {

/// A time by ticks(), and what is needed to count in microseconds from it: policies have no clock of their own.
struct Moment {
  std::uint64_t ticks = 0;
  std::uint64_t ticks_per_us = 1;

  /// The longest that anything may be put off. What is further ahead was noted before the counter began anew (a machine
  /// that was suspended or moved): it is long past.
  static constexpr std::uint64_t kFarUs = 60'000'000;

  [[nodiscard]] constexpr std::uint64_t after(std::uint64_t us) const noexcept { return ticks + us * ticks_per_us; }
  /// Microseconds since `then`; none if that is still to come (another processor's count may be a little ahead).
  [[nodiscard]] constexpr std::uint64_t since(std::uint64_t then) const noexcept {
    if (ticks > then) return (ticks - then) / ticks_per_us;
    return then > after(kFarUs) ? kFarUs : 0;
  }
  /// Whether `then`, which was at most kFarUs ahead when it was noted, is still to come.
  [[nodiscard]] constexpr bool before(std::uint64_t then) const noexcept {
    return ticks < then && then <= after(kFarUs);
  }
};

}  // namespace lrpc::shim
