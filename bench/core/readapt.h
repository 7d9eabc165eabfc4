// After how many calls latency has settled again when something changed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace lrpc::bench {

/// The medians of consecutive windows of calls, from a change to the next.
struct Phase {
  std::span<const double> window_medians;
  std::uint32_t calls_per_window = 1;
};

inline constexpr double kReadaptedWithin = 1.25;         ///< Of the steady state.
inline constexpr std::uint64_t kReadaptedCalls = 5'000;  ///< The bar.
inline constexpr std::size_t kSettled = 5;               ///< Windows in a row that show it.

/// The phase's steady state: the median of the windows of its second half. NaN if there are no windows.
[[nodiscard]] double steady_state(const Phase& phase);
/// The calls before the first window from which on the median of kSettled windows in a row is within kReadaptedWithin
/// of the steady state. A few odd windows later do not count: they belong to the steady state. Nothing if that never
/// happens, as where there are no windows.
[[nodiscard]] std::optional<std::uint64_t> calls_to_readapt(const Phase& phase);

}  // namespace lrpc::bench
