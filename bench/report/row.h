// One row of a table, which is also one line of the JSON file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace lrpc::bench {

/// The paper's figure for the same thing, if it prints one, in microseconds on a C-VAX Firefly.
struct PaperFigure {
  std::optional<double> us;
  std::optional<double> ratio;  ///< To the paper's own minimum.
};

/// The figures of a row. If something was measured once, median, p99, min and max are that one number.
struct Figures {
  double median = 0;
  double p99 = 0;
  double min = 0;
  double max = 0;
  std::uint64_t calls = 0;                ///< Timed calls (or events) behind the figures.
  std::optional<double> floor = {};       ///< Median of the floor in the same run, in the row's unit.
  std::optional<double> ratio = {};       ///< Median of the paired ratios to the floor.
  std::optional<double> over_floor = {};  ///< Median of the paired differences to the floor. Not in the JSON.

  /// Of all calls: shows rare, very long calls, which the median hides. NaN if it is not known.
  double mean = std::numeric_limits<double>::quiet_NaN();

  /// For a quantity that is counted, not sampled.
  static Figures exactly(double value, std::uint64_t of_calls, std::optional<double> floor = {},
                         std::optional<double> ratio = {}) {
    return {value, value, value, value, of_calls, floor, ratio};
  }
};

struct Row {
  std::string_view bench;            ///< The command: table3, table4, ...
  std::string_view system = "lrpc";  ///< Or what lrpc is compared with.
  std::string_view gate = "none";    ///< exchange, handoff, trap, adaptive, none.
  std::string_view placement = {};   ///< one-core, two-cores, unpinned.
  std::string test;
  std::string_view unit = "ns";
  Figures figures = {};
  PaperFigure paper = {};
};

}  // namespace lrpc::bench
