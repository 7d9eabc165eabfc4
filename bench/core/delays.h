// Delays between a report of the kernel and the moment when a process learns of the event, and the bars for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "report/row.h"

namespace lrpc::bench {

/// The bars of the median delay and of the longest, on an idle machine, in nanoseconds.
inline constexpr double kMedianDelayBar = 1e6;
inline constexpr double kWorstDelayBar = 20e6;

struct Delays {
  Figures waited;            ///< Nanoseconds; a process that learnt of it before the report counts as 0.
  std::uint64_t before = 0;  ///< How many learnt of it before the report.

  /// "median worst": the bars that were missed; empty if none was.
  [[nodiscard]] std::string missed() const;
};
/// A delay is negative if the process learnt of the event before the report.
[[nodiscard]] Delays delays_of(std::span<const double> signed_ns);

}  // namespace lrpc::bench
