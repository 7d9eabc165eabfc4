#include "svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <iterator>

namespace lrpc::bench {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 480;
constexpr double kLeft = 80;
constexpr double kRight = 20;
constexpr double kTop = 40;
constexpr double kBottom = 60;
/// The legend is below everything else.
constexpr std::size_t kLegendColumns = 3;
constexpr double kLegendColumn = 270;
constexpr double kLegendRow = 18;
constexpr std::array<std::string_view, 6> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#555555"};

/// One axis: maps values to positions on the page.
class Scale {
 public:
  Scale(bool logarithmic, double from, double to) : logarithmic_(logarithmic), from_(from), to_(to) {}
  void include(double value) noexcept {
    if (!shows(value)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
  [[nodiscard]] bool shows(double value) const noexcept { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  /// Widens the range so that it is not empty; a logarithmic one then ends at powers of ten.
  void round() noexcept {
    if (low_ > high_) low_ = 1, high_ = 2;
    if (logarithmic_) {
      low_ = std::pow(10, std::floor(std::log10(low_)));
      high_ = std::pow(10, std::ceil(std::log10(high_)));
      if (low_ == high_) high_ *= 10;
    } else if (low_ == high_) {
      high_ = low_ + 1;
    }
  }
  [[nodiscard]] double place(double value) const noexcept {
    const double along = logarithmic_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
                                      : (value - low_) / (high_ - low_);
    return from_ + along * (to_ - from_);
  }
  [[nodiscard]] std::vector<double> ticks() const { return axis_ticks(low_, high_, logarithmic_); }

 private:
  bool logarithmic_;
  double from_;
  double to_;
  double low_ = HUGE_VAL;
  double high_ = -HUGE_VAL;
};

using Out = std::back_insert_iterator<std::string>;

/// One line of the file.
template <class... Args>
void put(Out out, fmt::format_string<Args...> format, Args&&... args) {
  *fmt::format_to(out, format, std::forward<Args>(args)...) = '\n';
}

void draw_axes(Out out, const Axis& x_axis, const Axis& y_axis, const Scale& x, const Scale& y) {
  const double bottom = kHeight - kBottom;
  const double right = kWidth - kRight;
  for (const double tick : x.ticks()) {
    const double at = x.place(tick);
    put(out, R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}" stroke="#dddddd"/>)", at, kTop, bottom);
    put(out, R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", at, bottom + 18, tick_label(tick));
  }
  for (const double tick : y.ticks()) {
    const double at = y.place(tick);
    put(out, R"(<line x1="{1}" y1="{0:.1f}" x2="{2}" y2="{0:.1f}" stroke="#dddddd"/>)", at, kLeft, right);
    put(out, R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 6, at + 4, tick_label(tick));
  }
  put(out, R"(<polyline points="{0},{1} {0},{2} {3},{2}" fill="none" stroke="black"/>)", kLeft, kTop, bottom, right);
  put(out, R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", (kLeft + right) / 2, kHeight - 18,
      in_xml(x_axis.label));
  fmt::format_to(out,
                 R"svg(<text transform="translate(18 {:.1f}) rotate(-90)" text-anchor="middle">{}</text>)svg"
                 "\n",
                 (kTop + bottom) / 2, in_xml(y_axis.label));
}

void draw_line(Out out, const Series& series, std::string_view colour, const Scale& x, const Scale& y) {
  std::string points;
  const auto flush = [&] {
    if (!points.empty())
      put(out, R"(<polyline points="{}" fill="none" stroke="{}" stroke-width="1.5"{}/>)", points, colour,
          series.dashed ? R"( stroke-dasharray="6 4")" : "");
    points.clear();
  };
  for (const auto& [px, py] : series.points) {
    if (!x.shows(px) || !y.shows(py)) {
      flush();
      continue;
    }
    fmt::format_to(std::back_inserter(points), "{}{:.1f},{:.1f}", points.empty() ? "" : " ", x.place(px), y.place(py));
  }
  flush();
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, bool logarithmic) {
  std::vector<double> ticks;
  if (logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
    const int last = static_cast<int>(std::ceil(std::log10(high) - 1e-9));
    for (int power = first; power <= last; ++power) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10, power);
        if (digit > 1 && last - first > 2) continue;  // decades are enough
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    return ticks;
  }
  const double rough = (high - low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double digit : {2.0, 5.0, 10.0})
    if (step < rough * 0.75) step = digit * power;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string tick_label(double value) {
  const double magnitude = std::abs(value);
  if (magnitude >= 1e9) return fmt::format("{:g}G", value / 1e9);
  if (magnitude >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (magnitude >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", magnitude < 1e-12 ? 0 : value);
}

std::string SvgPlot::str() const {
  Scale x(x_.logarithmic, kLeft, kWidth - kRight);
  Scale y(y_.logarithmic, kHeight - kBottom, kTop);
  if (!y_.logarithmic) y.include(0);
  for (const auto& series : series_) {
    for (const auto& [px, py] : series.points) {
      x.include(px);
      y.include(py);
    }
  }
  if (x_.logarithmic) x.round();
  y.round();
  const std::size_t legend_rows = (series_.size() + kLegendColumns - 1) / kLegendColumns;
  std::string text;
  const Out out(text);
  fmt::format_to(out,
                 R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
                 R"(font-family="sans-serif" font-size="12">)"
                 "\n"
                 R"(<rect width="100%" height="100%" fill="white"/>)"
                 "\n",
                 kWidth, kHeight + kLegendRow * static_cast<double>(legend_rows));
  put(out, R"(<text x="{}" y="22" font-size="15">{}</text>)", kLeft, in_xml(title_));
  draw_axes(out, x_, y_, x, y);
  for (const auto& [at, label] : marks_) {
    put(out, R"(<line x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}" stroke="black" stroke-dasharray="2 3"/>)",
        x.place(at), kTop, kHeight - kBottom);
    put(out, R"(<text x="{:.1f}" y="{}">{}</text>)", x.place(at) + 4, kTop + 12, in_xml(label));
  }
  for (std::size_t i = 0; i < series_.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    const std::size_t legend_row = i / kLegendColumns;
    draw_line(out, series_[i], colour, x, y);
    put(out, R"(<text x="{}" y="{}" fill="{}">{} {}</text>)",
        kLeft + kLegendColumn * static_cast<double>(i % kLegendColumns),
        kHeight + kLegendRow * static_cast<double>(legend_row), colour, series_[i].dashed ? "- -" : "\u2014",
        in_xml(series_[i].name));
  }
  return text + "</svg>\n";
}

std::string in_xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

Status write_picture(const std::string& path, const std::string& svg) {
  std::ofstream file(path, std::ios::trunc);
  file << svg << std::flush;
  if (!file) return system_error("cannot write " + path, errno);
  return {};
}

}  // namespace lrpc::bench
