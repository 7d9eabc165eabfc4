// Draws runs as strips of colour, one strip a run, time from left to right, so that slow stretches are easy to see.
#pragma once

#include <string>
#include <vector>

namespace lrpc::bench {

struct Strip {
  std::string label;          ///< Empty: the same as the one above.
  std::vector<double> times;  ///< Nanoseconds, one a window; a NaN window stays empty.
};

/// Returns an SVG file. A time is green up to `good`, yellow at ten times that, red from a hundred times.
[[nodiscard]] std::string strips_svg(const std::string& title, const std::vector<Strip>& strips, double good);

}  // namespace lrpc::bench
