// Line plots as SVG files, with only what the benches need: two axes, lines, marks, a legend.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/result.h"

namespace lrpc::bench {

struct Axis {
  std::string label;
  bool logarithmic = false;  ///< Values that are not positive are left out.
};

/// One line of the plot. A point that is not finite interrupts it.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool dashed = false;
};

class SvgPlot {
 public:
  SvgPlot(std::string title, Axis x, Axis y) : title_(std::move(title)), x_(std::move(x)), y_(std::move(y)) {}
  void add(Series series) { series_.push_back(std::move(series)); }
  /// Adds a vertical line at `x` with a text at its top.
  void mark(double x, std::string text) { marks_.emplace_back(x, std::move(text)); }

  [[nodiscard]] std::string str() const;

 private:
  std::string title_;
  Axis x_;
  Axis y_;
  std::vector<Series> series_;
  std::vector<std::pair<double, std::string>> marks_;
};

/// `text` with XML's special characters escaped.
[[nodiscard]] std::string in_xml(std::string_view text);
/// Writes the file, replacing what it contained. Errors: system_error.
Status write_picture(const std::string& path, const std::string& svg);
/// The ticks of an axis from `low` to `high`: round numbers, between three and a dozen. Precondition: low < high; both
/// positive if logarithmic.
[[nodiscard]] std::vector<double> axis_ticks(double low, double high, bool logarithmic);
/// 1500000 is "1.5M", 0.25 is "0.25".
[[nodiscard]] std::string tick_label(double value);

}  // namespace lrpc::bench
