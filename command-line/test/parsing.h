// What a declared command line makes of arguments, for tests.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "lrpc/command_line.h"

namespace lrpc::command_line::test {

// The exit statuses of a wrong command line that these tests meet. Scripts may rely on them.
inline constexpr int kValidationError = 105;
inline constexpr int kRequiredError = 106;
inline constexpr int kRequiresError = 107;
inline constexpr int kExcludesError = 108;
inline constexpr int kExtrasError = 109;
inline constexpr int kConversionError = 104;
inline constexpr int kArgumentMismatch = 114;

/// While it lives, what is written to `stream` arrives in text().
class Captured {
 public:
  explicit Captured(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(text_.rdbuf())) {}
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() { stream_.rdbuf(before_); }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::ostream& stream_;
  std::streambuf* before_;
};

struct Outcome {
  std::optional<int> status;
  std::string out;
  std::string error;
};

inline Outcome parse(Program& program, const std::vector<const char*>& arguments) {
  std::vector<const char*> all{"argv0"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const Captured out(std::cout);
  const Captured error(std::cerr);
  const std::optional<int> status = program.parse(static_cast<int>(all.size()), all.data());
  return {status, out.text(), error.text()};
}

/// One line of a table: what a declaration makes of some arguments.
struct Row {
  std::vector<const char*> arguments;
  std::optional<int> status = std::nullopt;  ///< Nothing: the program goes on.
  std::string error = {};                    ///< The first line on the standard error.
};

inline void expect(const std::function<void(Program&)>& declare, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    std::string line = "arguments:";
    for (const char* argument : row.arguments) line += std::string(" ") + argument;
    SCOPED_TRACE(line);
    Program program("For tests.", "tested");
    declare(program);
    const Outcome outcome = parse(program, row.arguments);
    EXPECT_EQ(outcome.status, row.status);
    EXPECT_EQ(outcome.error.substr(0, outcome.error.find('\n')), row.error);
    EXPECT_EQ(outcome.out, "");
  }
}

inline std::string help_of(const std::function<void(Program&)>& declare) {
  Program program("For tests.", "tested");
  declare(program);
  const Outcome outcome = parse(program, {"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error, "");
  return outcome.out;
}

}  // namespace lrpc::command_line::test
