// What is left of many delays: how long after a report of the kernel somebody heard, held against the bars.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "report/row.h"

namespace lrpc::bench {

/// The bars of a delay, on an idle machine, in nanoseconds.
inline constexpr double kMedianDelayBar = 1e6;
inline constexpr double kWorstDelayBar = 20e6;

struct Delays {
  Figures waited;            ///< Nanoseconds; who heard before the report counts as 0.
  std::uint64_t before = 0;  ///< How many heard before it.

  /// "median worst": those of the bars that were missed; empty if none was.
  [[nodiscard]] std::string missed() const;
};
/// Of signed delays: negative if somebody heard before the report.
[[nodiscard]] Delays delays_of(std::span<const double> signed_ns);

}  // namespace lrpc::bench
