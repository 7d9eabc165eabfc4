// Fixed-width tables on the standard output, printed row by row as the rows are measured.
#pragma once

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
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void print_head() const;
  /// Missing cells at the end stay empty; the last given cell may be longer than its column.
  void print(const std::vector<std::string>& cells) const;
  void print_line() const;

 private:
  std::vector<Column> columns_;
};

/// 0.00, 12.3, 4567: three significant places where they mean something, "-" for nothing.
[[nodiscard]] std::string number(std::optional<double> value);
[[nodiscard]] std::string ratio(std::optional<double> value);

/// The columns every table of timed rows has, and their cells.
[[nodiscard]] std::vector<Column> row_columns();
[[nodiscard]] std::vector<std::string> row_cells(const Row& row);

/// A title with a line under it.
/// The title, a note, and an empty line: what stands above a bench's first table.
void print_intro(std::string_view title, std::string_view note);
void print_title(std::string_view title);
/// A paragraph, wrapped at 110 characters, indented by two.
void print_note(std::string_view text);

}  // namespace lrpc::bench
