// A graph's picture as text and as SVG.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "netrpc/graph/layout.h"

namespace lrpc::netrpc {

namespace {

class Canvas {
 public:
  Canvas(int width, int height)
      : rows_(static_cast<std::size_t>(height), std::string(static_cast<std::size_t>(width), ' ')) {}
  void set(int x, int y, char c) { rows_[static_cast<std::size_t>(y)][static_cast<std::size_t>(x)] = c; }
  void write(int x, int y, const std::string& text) {
    rows_[static_cast<std::size_t>(y)].replace(static_cast<std::size_t>(x), text.size(), text);
  }
  void across(int from, int to, int y) {
    for (int x = std::min(from, to); x <= std::max(from, to); ++x) set(x, y, '-');
  }
  void down(int x, int from, int to) {
    for (int y = from; y <= to; ++y) set(x, y, '|');
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& row : rows_) {
      text.append(row, 0, row.find_last_not_of(' ') + 1);
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<std::string> rows_;
};

bool straight(const PictureWire& wire) { return wire.to.size() == 1 && wire.to.front() == wire.from; }

std::string list(const std::vector<InstanceDescription>& instances) {
  std::string text;
  for (const InstanceDescription& instance : instances) {
    text += instance.name + " = " + instance.kind;
    if (!instance.below.empty()) text += fmt::format(" over {}", fmt::join(instance.below, ", "));
    text += '\n';
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace

std::string GraphDescription::draw_text() const {
  const std::optional<Picture> picture = lay_out(instances_);
  if (!picture) return list(instances_);
  Canvas canvas(picture->width, picture->height);
  // Where two lines cross, the vertical one is drawn through; where they join there is a +.
  for (const PictureWire& wire : picture->wires)
    for (const int to : wire.to)
      if (!straight(wire)) canvas.across(wire.from, to, wire.row);
  for (const PictureWire& wire : picture->wires) {
    canvas.down(wire.from, wire.top, wire.row);
    for (const int to : wire.to) canvas.down(to, wire.row, wire.bottom);
  }
  for (const PictureWire& wire : picture->wires) {
    if (straight(wire)) continue;
    canvas.set(wire.from, wire.row, '+');
    for (const int to : wire.to) canvas.set(to, wire.row, '+');
  }
  for (const PictureBox& box : picture->boxes) {
    const std::string border = "+" + std::string(static_cast<std::size_t>(box.width) - 2, '-') + "+";
    canvas.write(box.x, box.y, border);
    canvas.write(box.x, box.y + box.height - 1, border);
    for (int i = 0; i < box.height - 2; ++i) {
      canvas.set(box.x, box.y + 1 + i, '|');
      canvas.set(box.x + box.width - 1, box.y + 1 + i, '|');
      const std::string& line = box.lines[static_cast<std::size_t>(i)];
      canvas.write(box.x + (box.width - static_cast<int>(line.size())) / 2, box.y + 1 + i, line);
    }
  }
  return canvas.text();
}

std::string GraphDescription::draw_svg() const {
  const std::optional<Picture> picture = lay_out(instances_);
  if (!picture) return {};
  constexpr int kColumn = 8;
  constexpr int kRow = 16;
  constexpr int kMargin = 8;
  const auto x = [](int column) { return kMargin + column * kColumn; };
  const auto y = [](int row) { return kMargin + row * kRow; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<g fill=\"none\" stroke=\"#444444\">\n",
      2 * kMargin + picture->width * kColumn, 2 * kMargin + picture->height * kRow);
  for (const PictureWire& wire : picture->wires) {
    // Lines run in the middle of a column or row, and end at the edges of boxes.
    const int from = x(wire.from) + kColumn / 2;
    const int row = y(wire.row) + kRow / 2;
    for (const int to : wire.to) {
      const int end = x(to) + kColumn / 2;
      svg += from == end
                 ? fmt::format("<path d=\"M{} {}V{}\"/>\n", from, y(wire.top), y(wire.bottom + 1))
                 : fmt::format("<path d=\"M{} {}V{}H{}V{}\"/>\n", from, y(wire.top), row, end, y(wire.bottom + 1));
    }
  }
  svg += "</g>\n<g stroke=\"#444444\">\n";
  for (const PictureBox& box : picture->boxes)
    svg +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\"/>\n", x(box.x), y(box.y),
                    box.width * kColumn, box.height * kRow, box.gives == Service::transaction ? "#fff3d6" : "#e3eefb");
  svg += "</g>\n<g font-family=\"monospace\" font-size=\"12\" text-anchor=\"middle\" fill=\"#111111\">\n";
  for (const PictureBox& box : picture->boxes)
    for (std::size_t i = 0; i < box.lines.size(); ++i)
      svg += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", x(box.x) + box.width * kColumn / 2,
                         y(box.y + 1 + static_cast<int>(i)) + kRow * 3 / 4, i == 0 ? " font-weight=\"bold\"" : "",
                         escaped(box.lines[i]));
  svg += "</g>\n</svg>\n";
  return svg;
}

}  // namespace lrpc::netrpc
