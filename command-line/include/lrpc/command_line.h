// The command line of a program: options, flags, subcommands, help and errors. Every program of this project declares
// its command line here. The parser behind it is CLI11; its headers take seconds to compile, so only
// src/command_line.cpp includes them.
//
// A program binds its variables, parses, and reads them:
//
//   command_line::Program program("Exports a directory to other domains.", "files-server");
//   program.option("directory", directory, "The directory to export").required();
//   program.option("--threads", threads, "How many serve").in_range(1, 256).show_default();
//   if (const auto status = program.parse(argc, argv)) return *status;
//
// Names: "--long", "-s,--short-and-long", or a plain "word" for a positional argument.
//
// Ownership: the Program owns all options and subcommands; Option and Command are handles, valid while the Program
// lives. A bound variable belongs to the caller and must outlive parse(). It is written only if the option is given.
// Errors: a wrong declaration (the same name twice) is a bug of the program, and throws std::runtime_error.
// Threads: one at a time for each Program.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lrpc::command_line {

/// A declared option or flag. Each function changes the declaration and returns the same handle.
class Option {
 public:
  /// The command line is wrong without this option.
  Option required() const;
  /// The help shows the value that the variable has now. Has no effect on Command::choice().
  Option show_default() const;
  /// What the help and the errors call the value instead of its type, for example "DIR" instead of "TEXT".
  Option value_name(const std::string& name) const;
  /// What the help prints after the name instead of the value's name, its checks, and what the option needs.
  Option help_text(const std::string& text) const;

  /// The command line is wrong if this option is given without `other`.
  Option needs(Option other) const;
  /// The command line is wrong if both are given.
  Option excludes(Option other) const;

  /// For lists: an argument holds several values with this character between them.
  Option separated_by(char separator) const;

  // Checks of the value. The command line is wrong if one of them fails.
  Option in_range(int least, int most) const;  ///< Both inclusive, as in the next two.
  Option in_range(std::uint64_t least, std::uint64_t most) const;
  Option in_range(double least, double most) const;
  Option positive() const;
  Option non_negative() const;
  Option non_negative_or(const std::string& word) const;  ///< Of a text: a number that is not negative, or this word.
  Option one_of(std::vector<std::string> values) const;
  Option not_empty() const;
  Option existing_directory() const;

 private:
  friend class Command;
  explicit Option(CLI::Option* option) : option_(option) {}

  CLI::Option* option_;
};

/// A name that the user writes, and the value that it stands for.
template <typename Value>
struct Choice {
  const char* name;
  Value value;
};

/// A program or one of its subcommands.
class Command {
 public:
  /// `value` is a std::string, int, long long, unsigned, std::uint64_t or double; or a std::vector<std::string>, which
  /// takes the arguments up to the next option or `--`, at least one, and may be repeated.
  template <typename Value>
  Option option(const std::string& names, Value& value, const std::string& description) const;

  /// True if it is given. An explicit value is accepted, too: --name=false.
  Option flag(const std::string& names, bool& value, const std::string& description) const;

  /// An enum or a bool by name. The user may also write the value's number.
  template <typename Value>
  Option choice(const std::string& names, Value& value, const std::string& description,
                std::initializer_list<Choice<std::type_identity_t<Value>>> choices) const {
    static_assert(std::is_enum_v<Value> || std::is_same_v<Value, bool>);
    std::vector<std::pair<std::string, long long>> numbers;
    for (const auto& choice : choices) numbers.emplace_back(choice.name, static_cast<long long>(choice.value));
    return choice_of_number(names, std::is_enum_v<Value> ? "ENUM" : "BOOLEAN", std::move(numbers), description,
                            [&value](long long number) { value = static_cast<Value>(number); });
  }

  /// A subcommand, with options of its own. This command's options may also follow the subcommand's name.
  Command subcommand(const std::string& name, const std::string& description) const;
  /// The command line is wrong unless it names exactly one subcommand.
  void require_subcommand() const;
  /// What parse() calls at its end if the command line names this subcommand. parse() passes on what `action` throws.
  void on_use(std::function<void()> action) const;
  /// After parse(): the command line names this subcommand.
  [[nodiscard]] bool parsed() const;

 protected:
  explicit Command(CLI::App* app) : app_(app) {}

  CLI::App* app_;

 private:
  Option choice_of_number(const std::string& names, const char* value_name,
                          std::vector<std::pair<std::string, long long>> choices, const std::string& description,
                          std::function<void(long long)> chosen) const;
};

/// The command line of a whole program. --help and -h are always there.
class Program : public Command {
 public:
  /// `name` is what the help calls the program; empty: argv[0].
  explicit Program(const std::string& description, const std::string& name = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// --version prints `text`.
  void version(const std::string& text);
  /// The last paragraph of the help.
  void footer(const std::string& text);

  /// Writes the bound variables and calls the actions of the named subcommands. Returns nothing if the program goes on,
  /// else the exit status that it must end with:
  ///   0          the help or the version was asked for; it is on the standard output
  ///   1          it was, but the standard output could not be written (see printed())
  ///   100 to 127 the command line is wrong (CLI11's number of the error); the message is on the standard error. Some
  ///              bound variables may have been written.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);
  /// The exit status for main() of a program that prints: `status`, or 1 instead of 0 if the standard output could not
  /// be written (a full disk); then it says so on the standard error. Flushes the standard output.
  [[nodiscard]] int printed(int status) const;

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace lrpc::command_line
