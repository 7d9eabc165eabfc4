#include "strips.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "svg_plot.h"

namespace lrpc::bench {
namespace {

constexpr int kStripsLeft = 260;
constexpr int kStripsTop = 40;
constexpr int kSquare = 12;  ///< Width of a window, in pixels.
constexpr int kStrip = 10;

/// Hue in degrees: 120 is green, 60 yellow, 0 red.
int hue(double time, double good) {
  return static_cast<int>(120 - 60 * std::clamp(std::log10(std::max(time, 1.0) / good), 0.0, 2.0));
}

}  // namespace

std::string strips_svg(const std::string& title, const std::vector<Strip>& strips, double good) {
  std::size_t longest = 1;
  for (const Strip& strip : strips) longest = std::max(longest, strip.times.size());
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" "
      "font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"10\" y=\"20\" "
      "font-size=\"14\">{}</text>\n",
      kStripsLeft + static_cast<int>(longest) * kSquare + 20,
      kStripsTop + static_cast<int>(strips.size()) * kStrip + 20, in_xml(title));
  for (std::size_t row = 0; row < strips.size(); ++row) {
    const int y = kStripsTop + static_cast<int>(row) * kStrip;
    svg += fmt::format("<text x=\"10\" y=\"{}\">{}</text>\n", y + kStrip - 1, in_xml(strips[row].label));
    for (std::size_t i = 0; i < strips[row].times.size(); ++i) {
      const double time = strips[row].times[i];
      if (std::isnan(time)) continue;
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"hsl({},80%,45%)\"><title>{:.0f} "
          "ns</title></rect>\n",
          kStripsLeft + static_cast<int>(i) * kSquare, y, kSquare - 1, kStrip - 1, hue(time, good), time);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace lrpc::bench
