// Fixed-width tables on the standard output, printed row by row as the rows are measured.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "row.h"

namespace lrpc::bench {

struct Column {
  std::string title;
  int width;  ///< Characters; negative: aligned to the left.
};

class Table {
 public:
  /// Prints the head.
  explicit Table(std::vector<Column> columns);
  Table(std::initializer_list<Column> columns) : Table(std::vector<Column>(columns)) {}
  /// Missing cells at the end stay empty; the last given cell may be longer than its column.
  void print(const std::vector<std::string>& cells) const;
  void print_line() const;

 private:
  std::vector<Column> columns_;
};

/// 0.00, 12.3, 4567: about three significant digits; "-" if there is no value.
[[nodiscard]] std::string number(std::optional<double> value);
[[nodiscard]] std::string ratio(std::optional<double> value);

/// The names of the bars that a row misses, for its last cell: "median p99".
class MissedBars {
 public:
  void add(bool missed, std::string_view bar);
  [[nodiscard]] const std::string& names() const noexcept { return names_; }

 private:
  std::string names_;
};

/// The columns of every table of timed rows, and a row's cells.
[[nodiscard]] std::vector<Column> row_columns();
[[nodiscard]] std::vector<std::string> row_cells(const Row& row);

/// Prints what stands above a bench's first table: the title, a note, and an empty line.
void print_intro(std::string_view title, std::string_view note);
/// Prints a title with a line under it.
void print_title(std::string_view title);
/// Prints a paragraph, wrapped at 110 characters, indented by two.
void print_note(std::string_view text);

}  // namespace lrpc::bench
