// After how many calls the latency has settled again when something changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lrpc::bench {

/// The medians of consecutive windows of calls, from one change to the next.
struct Phase {
  std::span<const double> window_medians;
  std::uint32_t calls_per_window = 1;
};

inline constexpr double kReadaptedWithin = 1.25;         ///< At most this multiple of the steady state.
inline constexpr std::uint64_t kReadaptedCalls = 5'000;  ///< The bar.
inline constexpr std::size_t kSettled = 5;               ///< Consecutive windows that must show it.

/// The phase's steady state: the median of the windows of its second half. NaN if there are no windows.
[[nodiscard]] double steady_state(const Phase& phase);
/// The number of calls before the first window that is within kReadaptedWithin of the steady state, and from which on
/// the median of kSettled consecutive windows is so, too. Slower windows later do not count: they belong to the steady
/// state. Nothing if no window qualifies, or if there are none.
[[nodiscard]] std::optional<std::uint64_t> calls_to_readapt(const Phase& phase);

}  // namespace lrpc::bench
