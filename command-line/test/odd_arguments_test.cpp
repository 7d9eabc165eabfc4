// Arguments that a parser may take for something else, values that may not be, and output that cannot be written.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "parsing.h"

namespace lrpc::command_line::test {
namespace {

TEST(CommandLine, takes_arguments_in_brackets_as_they_are) {
  for (const char* const argument : {"[a,b]", "[a]", "[]", "[", "]", "[a]\x01", "x[1]", "{}"}) {
    std::string text;
    std::vector<std::string> list;
    std::vector<std::string> rest;
    Program program("For tests.", "tested");
    program.option("--text", text, "");
    program.option("--list", list, "");
    program.option("PROGRAM", rest, "");
    const std::string joined = std::string("--list=") + argument;
    const Outcome outcome =
        parse(program, {"--text", argument, "--list", argument, joined.c_str(), "--", "p", argument});
    EXPECT_EQ(outcome.status, std::nullopt) << argument << ": " << outcome.error;
    EXPECT_EQ(text, argument);
    EXPECT_EQ(list, (std::vector<std::string>{argument, argument}));
    EXPECT_EQ(rest, (std::vector<std::string>{"p", argument}));
  }
  std::vector<std::string> only;
  std::string level;
  int number = 0;
  expect(
      [&](Program& program) {
        program.option("--only", only, "").separated_by(',');
        program.option("--level", level, "").one_of({"[high]", "low"});
        program.option("--number", number, "");
      },
      {{{"--only", "[a],b,[c]", "--level", "[high]"}},
       {{"--level", "[low]"}, kValidationError, "--level: [low] not in {[high],low}"},
       {{"--number", "[1]"}, kConversionError, "Could not convert: --number = [1]"},
       {{"[x]"}, kExtrasError, "The following argument was not expected: [x]"}});
  EXPECT_EQ(only, (std::vector<std::string>{"[a]", "b", "[c]"}));
  EXPECT_EQ(level, "[high]");
}

TEST(CommandLine, refuses_what_is_not_to_be_empty) {
  std::string file;
  expect([&](Program& program) { program.option("--file", file, "").not_empty(); },
         {{{"--file", ""}, kValidationError, "--file: it is empty"},
          {{"--file="}, kArgumentMismatch, "--file: 1 required TEXT missing"},
          {{"--file", "a"}}});
}

/// In a child process: prints to a disk that is full.
[[noreturn]] void print_to_a_full_disk(int status) {
  if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(99);
  const Program program("For tests.", "tested");
  std::puts("a line");
  std::_Exit(program.printed(status));
}

/// In a child process: is asked for what a disk that is full does not take.
[[noreturn]] void parse_on_a_full_disk(const char* argument) {
  if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(99);
  Program program("For tests.", "tested");
  program.version("tested 1");
  const std::array<const char*, 2> arguments{"tested", argument};
  std::_Exit(program.parse(2, arguments.data()).value_or(98));
}

TEST(CommandLine, ends_with_1_if_the_help_or_the_version_could_not_be_written) {
  for (const char* const argument : {"--help", "--version"})
    EXPECT_EXIT(parse_on_a_full_disk(argument), testing::ExitedWithCode(1),
                "^tested: the standard output could not be written\n$");
  EXPECT_EXIT(parse_on_a_full_disk("--unknown"), testing::ExitedWithCode(kExtrasError), "--unknown");
}

TEST(CommandLine, ends_with_1_if_what_was_printed_could_not_be_written) {
  EXPECT_EXIT(print_to_a_full_disk(0), testing::ExitedWithCode(1),
              "^tested: the standard output could not be written\n$");
  EXPECT_EXIT(print_to_a_full_disk(7), testing::ExitedWithCode(7), "^$");
  const Program program("For tests.", "tested");
  EXPECT_EQ(program.printed(0), 0);
  EXPECT_EQ(program.printed(2), 2);
}

}  // namespace
}  // namespace lrpc::command_line::test
