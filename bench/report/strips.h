// Runs as strips of colour, so that bad stretches can be seen: time from left to right, a strip a run.
#pragma once

#include <string>
#include <vector>

namespace lrpc::bench {

struct Strip {
  std::string label;          ///< Empty: as the one above.
  std::vector<double> times;  ///< Nanoseconds, one a window; NaN: nothing to show.
};

/// As an SVG file; green where a time is `good`, through yellow (ten times that) to red (a hundred times).
[[nodiscard]] std::string strips_svg(const std::string& title, const std::vector<Strip>& strips, double good);

}  // namespace lrpc::bench
