// Generated text: indentation, line breaks and comments in one place, so that the output reads as if written by hand.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrpc/stubgen/language/token.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// A C++ file that is being written. Lines are indented by two spaces a block and broken at 120 columns.
class Code {
 public:
  static constexpr std::size_t kWidth = 120;

  /// One line at the current indentation; an empty line gets none.
  void line(std::string_view text = {});
  template <class... T>
  requires(sizeof...(T) > 0) void line(fmt::format_string<T...> format, T&&... arguments) {
    line(std::string_view(fmt::format(format, std::forward<T>(arguments)...)));
  }
  /// The same, and an empty line behind it.
  void last_line(std::string_view text) {
    line(text);
    line();
  }
  template <class... T>
  requires(sizeof...(T) > 0) void last_line(fmt::format_string<T...> format, T&&... arguments) {
    last_line(std::string_view(fmt::format(format, std::forward<T>(arguments)...)));
  }
  /// A line, or a list, that opens a block; close() ends it.
  void open(std::string_view text);
  void open(std::string_view head, const std::vector<std::string>& items, std::string_view tail);
  void close(std::string_view text = "}");
  /// The same, and an empty line behind it.
  void end(std::string_view text = "}") {
    close(text);
    line();
  }
  /// Ends a block without braces.
  void outdent() { indent_ -= 2; }
  /// `if (condition) [[unlikely]] action`, on one line or more. An action that is too long for one line is broken at
  /// its '\n', which otherwise becomes a space.
  void guard(std::string_view condition, std::string_view action);
  /// `// text`, broken at word ends.
  void comment(std::string_view text);
  /// `/// ...`, one line each. Whatever the file's author wrote, it stays inside the comment.
  void doc(const Doc& doc);
  /// `head a, b, c tail`, on one line or with the items on continuation lines.
  void list(std::string_view head, const std::vector<std::string>& items, std::string_view tail);
  /// `head a, b, c tail`, the items from the first line on.
  void fill(std::string_view head, const std::vector<std::string>& items, std::string_view tail);
  /// A function of one statement: `head parameters tail { call arguments end after`, on one line if it fits.
  void function(std::string_view head, const std::vector<std::string>& parameters, std::string_view tail,
                std::string_view call, const std::vector<std::string>& arguments, std::string_view end,
                std::string_view after = "}");

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t indent_ = 0;
};

/// Names of variables and functions that the generated code itself declares. They get a '_', in which no name in a file
/// ends, if a parameter has the same name or if they would hide a type.
class Locals {
 public:
  explicit Locals(std::shared_ptr<const GivenNames> given, NameSet parameters = {})
      : given_(std::move(given)), parameters_(std::move(parameters)) {}

  /// A variable of a function.
  [[nodiscard]] std::string operator()(std::string_view wanted) const {
    return parameters_.contains(wanted) ? std::string(wanted) + "_" : function(wanted);
  }
  /// A function of namespace `layout`, which also uses the types.
  [[nodiscard]] std::string function(std::string_view wanted) const {
    return std::string(wanted) + (given_->types.contains(wanted) ? "_" : "");
  }

 private:
  std::shared_ptr<const GivenNames> given_;
  NameSet parameters_;
};

}  // namespace lrpc::stubgen
