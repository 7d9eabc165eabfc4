// Generated text: indentation, line breaks and comments in one place, so that the output reads as if written by hand.
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "token.h"

namespace lrpc::stubgen {

/// A C++ file that is being written. Lines are indented by two spaces a block and broken at 120 columns.
class Code {
 public:
  static constexpr std::size_t kWidth = 120;

  /// One line at the current indentation; an empty one without it.
  void line(std::string_view text = {});
  template <class... T>
  requires(sizeof...(T) > 0) void line(fmt::format_string<T...> format, T&&... arguments) {
    line(std::string_view(fmt::format(format, std::forward<T>(arguments)...)));
  }
  /// A line that opens a block; close() ends it.
  void open(std::string_view text);
  void close(std::string_view text = "}");
  /// What follows is a block, opened by the line before.
  void indent() { indent_ += 2; }
  /// `if (condition) [[unlikely]] action`, on one line or as a block.
  void guard(std::string_view condition, std::string_view action);
  /// `// text`, broken at word ends.
  void comment(std::string_view text);
  /// `/// ...`, one line each. Whatever the file's author wrote, it stays inside the comment.
  void doc(const Doc& doc);
  /// `head a, b, c tail`, on one line or with the items on continuation lines.
  void list(std::string_view head, const std::vector<std::string>& items, std::string_view tail);

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t indent_ = 0;
};

/// Names of the variables that a stub declares itself. Interface files cannot use names that end in '_', so that a
/// variable gets out of the way of a parameter by one.
class Locals {
 public:
  explicit Locals(std::set<std::string, std::less<>> parameters) : parameters_(std::move(parameters)) {}
  [[nodiscard]] std::string operator()(std::string_view wanted) const {
    return std::string(wanted) + (parameters_.contains(wanted) ? "_" : "");
  }

 private:
  std::set<std::string, std::less<>> parameters_;
};

}  // namespace lrpc::stubgen
