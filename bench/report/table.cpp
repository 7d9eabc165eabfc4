#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace lrpc::bench {
namespace {

std::string aligned(std::string_view text, int width) {
  return width < 0 ? fmt::format("{:<{}}", text, -width) : fmt::format("{:>{}}", text, width);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::string> titles;
  for (const auto& column : columns_) titles.push_back(column.title);
  print(titles);
  print_line();
}

void Table::print(const std::vector<std::string>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i) {
    if (i > 0) line += "  ";
    line += aligned(cells[i], columns_[i].width);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void Table::print_line() const {
  std::size_t width = 0;
  for (const auto& column : columns_) width += static_cast<std::size_t>(std::abs(column.width)) + 2;
  fmt::print("{:-<{}}\n", "", width - 2);
}

std::string number(std::optional<double> value) {
  if (!value || std::isnan(*value)) return "-";
  const double magnitude = std::abs(*value);
  return fmt::format("{:.{}f}", *value, magnitude < 10 ? 2 : magnitude < 1000 ? 1 : 0);
}

std::string ratio(std::optional<double> value) {
  if (!value || std::isnan(*value)) return "-";
  return fmt::format("{:.{}f}", *value, *value < 0.1 ? 4 : *value < 100 ? 2 : 0);
}

void MissedBars::add(bool missed, std::string_view bar) {
  if (!missed) return;
  if (!names_.empty()) names_ += ' ';
  names_ += bar;
}

std::vector<Column> row_columns() {
  return {{"system", -9}, {"gate", -8},    {"placement", -9},  {"test", -16}, {"min", 8},
          {"median", 8},  {"p99", 9},      {"max", 10},        {"floor", 8},  {"ratio", 7},
          {"calls", 9},   {"paper us", 8}, {"paper ratio", 11}};
}

std::vector<std::string> row_cells(const Row& row) {
  const Figures& f = row.figures;
  return {std::string(row.system),
          std::string(row.gate),
          std::string(row.placement),
          row.test,
          number(f.min),
          number(f.median),
          number(f.p99),
          number(f.max),
          number(f.floor),
          ratio(f.ratio),
          fmt::format("{}", f.calls),
          row.paper.us ? fmt::format("{:g}", *row.paper.us) : "-",
          ratio(row.paper.ratio)};
}

void print_title(std::string_view title) { fmt::print("\n{}\n{:=<{}}\n", title, "", title.size()); }

void print_note(std::string_view text) {
  constexpr std::size_t kWidth = 110;
  std::string line;
  const auto flush = [&] {
    if (!line.empty()) fmt::print("  {}\n", line);
    line.clear();
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (line.size() + word.size() + 1 > kWidth) flush();
    if (!line.empty()) line += ' ';
    line += word;
  }
  flush();
}

void print_intro(std::string_view title, std::string_view note) {
  print_title(title);
  print_note(note);
  fmt::print("\n");
}

}  // namespace lrpc::bench
