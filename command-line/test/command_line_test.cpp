#include "lrpc/command_line.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "parsing.h"

namespace lrpc::command_line::test {
namespace {

enum class Colour : std::uint8_t { red, green, blue = 200 };

TEST(CommandLine, writes_options_of_every_type_into_their_variables) {
  std::string text;
  std::string positional;
  int number = 0;
  long long large = 0;
  unsigned count = 0;
  std::uint64_t seed = 0;
  double rate = 0;
  std::vector<std::string> list;
  bool on = false;
  Program program("For tests.", "tested");
  program.option("FILE", positional, "");
  program.option("-t,--text", text, "");
  program.option("--number", number, "");
  program.option("--large", large, "");
  program.option("--count", count, "");
  program.option("--seed", seed, "");
  program.option("--rate", rate, "");
  program.option("--list", list, "");
  program.flag("--on", on, "");
  const Outcome outcome =
      parse(program, {"a.txt", "-t", "hello", "--number=-5", "--large", "-5000000000", "--count", "7", "--seed",
                      "18446744073709551615", "--rate", "0.25", "--list", "x", "y", "--on"});
  EXPECT_EQ(outcome.status, std::nullopt) << outcome.error;
  EXPECT_EQ(positional, "a.txt");
  EXPECT_EQ(text, "hello");
  EXPECT_EQ(number, -5);
  EXPECT_EQ(large, -5'000'000'000LL);
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(seed, UINT64_MAX);
  EXPECT_EQ(rate, 0.25);
  EXPECT_EQ(list, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(on);
}

TEST(CommandLine, leaves_a_variable_as_it_is_if_its_option_is_not_given) {
  std::string text = "before";
  bool on = true;
  Colour colour = Colour::blue;
  Program program("For tests.", "tested");
  program.option("--text", text, "");
  program.flag("--on", on, "");
  program.choice("--colour", colour, "", {{"red", Colour::red}});
  EXPECT_EQ(parse(program, {}).status, std::nullopt);
  EXPECT_EQ(text, "before");
  EXPECT_TRUE(on);
  EXPECT_EQ(colour, Colour::blue);
}

TEST(CommandLine, refuses_what_is_no_value_of_the_type) {
  int number = 0;
  std::uint64_t seed = 0;
  bool on = false;
  expect(
      [&](Program& program) {
        program.option("--number", number, "");
        program.option("--seed", seed, "");
        program.flag("--on", on, "");
      },
      {{{"--number", "x"}, kConversionError, "Could not convert: --number = x"},
       {{"--number", "99999999999"}, kConversionError, "Could not convert: --number = 99999999999"},
       {{"--seed", "1.5"}, kConversionError, "Could not convert: --seed = 1.5"},
       {{"--number"}, kArgumentMismatch, "--number: 1 required INT missing"},
       {{"--on=false"}},
       {{"--nonsense"}, kExtrasError, "The following argument was not expected: --nonsense"}});
  EXPECT_FALSE(on);
}

TEST(CommandLine, demands_what_is_required) {
  std::string file;
  expect([&](Program& program) { program.option("FILE", file, "").required(); },
         {{{}, kRequiredError, "FILE is required"}, {{"a"}}});
}

TEST(CommandLine, checks_which_options_go_together) {
  std::string check;
  std::string as;
  bool udp = false;
  expect(
      [&](Program& program) {
        const auto checked = program.option("--check", check, "");
        program.option("--as", as, "").needs(checked);
        program.flag("--udp", udp, "").excludes(checked);
      },
      {{{"--as", "me"}, kRequiresError, "--as requires --check"},
       {{"--check", "file", "--as", "me"}},
       {{"--check", "file", "--udp"}, kExcludesError, "--check excludes --udp"},
       {{"--udp"}}});
}

TEST(CommandLine, checks_ranges) {
  int number = 0;
  std::uint64_t calls = 0;
  double rate = 0;
  double minutes = 0;
  int descriptor = 0;
  expect(
      [&](Program& program) {
        program.option("--number", number, "").in_range(2, 4);
        program.option("--calls", calls, "").in_range(std::uint64_t{1}, std::uint64_t{1} << 40);
        program.option("--rate", rate, "").in_range(0.0, 1.0);
        program.option("--minutes", minutes, "").positive();
        program.option("--fd", descriptor, "").non_negative();
      },
      {{{"--number", "2", "--calls", "1099511627776", "--rate", "1", "--minutes", "0.1", "--fd", "0"}},
       {{"--number", "1"}, kValidationError, "--number: Value 1 not in range 2 to 4"},
       {{"--number", "5"}, kValidationError, "--number: Value 5 not in range 2 to 4"},
       {{"--calls", "1099511627777"}, kValidationError, "--calls: Value 1099511627777 not in range 1 to 1099511627776"},
       {{"--rate", "1.5"}, kValidationError, "--rate: Value 1.5 not in range 0.000000 to 1.000000"},
       {{"--minutes", "0"}, kValidationError, "--minutes: '0' is not a number over 0"},
       {{"--minutes", "1K"}, kValidationError, "--minutes: '1K' is not a number over 0"},
       {{"--fd", "-1"}, kValidationError, "--fd: '-1' is not a number from 0 up"}});
}

TEST(CommandLine, checks_membership_and_directories) {
  std::string level;
  std::string directory;
  expect(
      [&](Program& program) {
        program.option("--level", level, "").one_of({"debug", "info"});
        program.option("--directory", directory, "").existing_directory();
      },
      {{{"--level", "info"}},
       {{"--level", "loud"}, kValidationError, "--level: loud not in {debug,info}"},
       {{"--directory", "/"}},
       {{"--directory", "/nowhere"}, kValidationError, "--directory: Directory does not exist: /nowhere"}});
}

TEST(CommandLine, maps_names_to_enums_and_bools) {
  Colour colour = Colour::red;
  bool on = true;
  const auto declare = [&](Program& program) {
    program.choice("--colour", colour, "Of it",
                   {{"red", Colour::red}, {"green", Colour::green}, {"blue", Colour::blue}});
    program.choice("--on", on, "Whether", {{"auto", true}, {"off", false}}).help_text("auto|off");
  };
  expect(declare, {{{"--colour", "blue", "--on", "off"}}});
  EXPECT_EQ(colour, Colour::blue);
  EXPECT_FALSE(on);
  expect(declare, {{{"--colour", "1", "--on=auto"}}});
  EXPECT_EQ(colour, Colour::green);
  EXPECT_TRUE(on);
  expect(declare, {{{"--colour", "pink"},
                    kValidationError,
                    "--colour: Check pink value in {blue->200,green->1,red->0} OR {200,1,0} FAILED"},
                   {{"--on", "true"}, kValidationError, "--on: Check true value in {auto->1,off->0} OR {1,0} FAILED"}});
  const std::string help = help_of(declare);
  EXPECT_NE(help.find("--colour ENUM:value in {blue->200,green->1,red->0}"), std::string::npos) << help;
  EXPECT_NE(help.find("--on auto|off "), std::string::npos) << help;
}

TEST(CommandLine, takes_lists_up_to_the_next_option) {
  std::vector<std::string> allowed;
  std::vector<std::string> only;
  std::vector<std::string> rest;
  Program program("For tests.", "tested");
  program.option("--allow", allowed, "");
  program.option("--only", only, "").separated_by(',');
  program.option("PROGRAM", rest, "");
  EXPECT_EQ(parse(program, {"--allow", "a", "b", "--allow", "c", "--only", "x,y", "--", "prog"}).status, std::nullopt);
  EXPECT_EQ(allowed, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(only, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(rest, (std::vector<std::string>{"prog"}));
}

TEST(CommandLine, takes_what_follows_two_dashes_as_positional) {
  std::string text;
  std::vector<std::string> rest;
  Program program("For tests.", "tested");
  program.option("--text", text, "");
  program.option("PROGRAM", rest, "");
  EXPECT_EQ(parse(program, {"--text", "t", "--", "prog", "--text"}).status, std::nullopt);
  EXPECT_EQ(rest, (std::vector<std::string>{"prog", "--text"}));
}

TEST(CommandLine, knows_which_subcommand_was_named) {
  std::string path;
  int used = 0;
  const auto declare = [&](Program& program) {
    program.require_subcommand();
    program.subcommand("get", "Copy out").option("path", path, "").required();
    program.subcommand("list", "List").on_use([&] { ++used; });
  };
  expect(declare, {{{}, kRequiredError, "A subcommand is required"},
                   {{"get"}, kRequiredError, "path is required"},
                   {{"nonsense"}, kRequiredError, "A subcommand is required"},
                   {{"get", "a"}}});
  EXPECT_EQ(path, "a");
  EXPECT_EQ(used, 0);
  expect(declare, {{{"list"}}});
  EXPECT_EQ(used, 1);

  Program program("For tests.", "tested");
  const Command get = program.subcommand("get", "");
  const Command put = program.subcommand("put", "");
  EXPECT_EQ(parse(program, {"put"}).status, std::nullopt);
  EXPECT_FALSE(get.parsed());
  EXPECT_TRUE(put.parsed());
}

TEST(CommandLine, options_of_the_program_stand_in_front_of_a_subcommand_or_behind_it) {
  std::string socket;
  std::string own;
  std::vector<std::string> rest;
  std::string used;
  const auto declare = [&](Program& program) {
    program.require_subcommand();
    program.option("--socket", socket, "");
    program.subcommand("list", "").on_use([&] { used = socket; });
    const Command run = program.subcommand("run", "");
    run.option("--own", own, "");
    run.option("PROGRAM", rest, "").required();
  };
  expect(declare, {{{"--socket", "/a", "list"}}});
  EXPECT_EQ(used, "/a");
  expect(declare, {{{"list", "--socket=/b"}}});
  EXPECT_EQ(used, "/b");
  expect(declare, {{{"run", "--socket", "/c", "--own", "d", "--", "prog", "--socket", "e"}}});
  EXPECT_EQ(socket, "/c");
  EXPECT_EQ(own, "d");
  EXPECT_EQ(rest, (std::vector<std::string>{"prog", "--socket", "e"}));
  expect(declare, {{{"list", "more"}, kExtrasError, "The following argument was not expected: more"},
                   {{"list", "--own", "d"}, kExtrasError, "The following arguments were not expected: d --own"}});
}

TEST(CommandLine, passes_on_what_an_action_throws) {
  Program program("For tests.", "tested");
  program.subcommand("fail", "").on_use([] { throw std::invalid_argument("from the action"); });
  EXPECT_THROW((void)parse(program, {"fail"}), std::invalid_argument);
}

TEST(CommandLine, prints_the_help_on_the_standard_output_with_status_0) {
  std::string file;
  std::string out;
  std::string level;
  int clients = 16;
  double rate = 0.5;
  const std::string help = help_of([&](Program& program) {
    program.option("FILE", file, "The file").required();
    const auto directory = program.option("--out", out, "Where to").value_name("DIR");
    program.option("--level", level, "What to log").one_of({"debug", "info"}).needs(directory);
    program.option("--clients", clients, "How many").in_range(1, 40).show_default();
    program.option("--rate", rate, "Of loss").show_default();
    program.footer("The last line.");
  });
  for (const char* part : {"For tests.\nUsage: tested [OPTIONS] FILE\n", "  FILE TEXT REQUIRED", "-h,--help",
                           "--out DIR ", "--level TEXT:{debug,info} Needs: --out", "--clients INT:INT in [1 - 40]=16",
                           "--rate FLOAT=0.5", "\nThe last line.\n"}) {
    EXPECT_NE(help.find(part), std::string::npos) << part << "\nis not in\n" << help;
  }
}

TEST(CommandLine, takes_a_number_that_is_not_negative_or_the_word_for_none) {
  for (const char* right : {"0", "1.5", "1e3", "no-limit"}) {
    std::string time;
    Program program("For tests.");
    program.option("--timeout", time, "").non_negative_or("no-limit");
    EXPECT_FALSE(parse(program, {"--timeout", right}).status) << right;
    EXPECT_EQ(time, right);
  }
  for (const char* wrong : {"-1", "", "nan", "1s", "no limit", "for ever"}) {
    std::string time;
    Program program("For tests.");
    program.option("--timeout", time, "").non_negative_or("no-limit");
    const std::string argument = std::string("--timeout=") + wrong;
    const Outcome outcome = parse(program, {argument.c_str()});
    EXPECT_TRUE(outcome.status) << wrong;
    EXPECT_NE(outcome.error.find("--timeout"), std::string::npos) << outcome.error;
  }
}

TEST(CommandLine, is_called_as_argv_says_if_it_has_no_name) {
  Program program("For tests.");
  EXPECT_NE(parse(program, {"-h"}).out.find("Usage: argv0 [OPTIONS]"), std::string::npos);
}

TEST(CommandLine, prints_the_version_with_status_0) {
  Program program("For tests.", "tested");
  program.version("tested 1.2");
  const Outcome outcome = parse(program, {"--version"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, "tested 1.2\n");
}

TEST(CommandLine, points_to_the_help_after_an_error) {
  Program program("For tests.", "tested");
  EXPECT_EQ(parse(program, {"x"}).error,
            "The following argument was not expected: x\nRun with --help for more information.\n");
}

TEST(CommandLine, throws_if_a_name_is_declared_twice) {
  std::string text;
  Program program("For tests.", "tested");
  program.option("--text", text, "");
  EXPECT_THROW(program.option("--text", text, ""), std::runtime_error);
}

}  // namespace
}  // namespace lrpc::command_line::test
