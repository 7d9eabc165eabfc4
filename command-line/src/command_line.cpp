// The only file that includes CLI11.
#include "lrpc/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <system_error>

namespace lrpc::command_line {

namespace {

// CLI11 takes the argument "[a,b]" for a list of two if an option or a positional argument takes several values. So a
// mark is appended to every argument that ends with a bracket, and removed from the value before anything looks at it.
constexpr char kMark = '\x01';

/// Whether `text` ends with a bracket and any number of marks: the user's own and, in values, the one of mark().
bool ends_with_bracket(const std::string& text) {
  const std::size_t last = text.find_last_not_of(kMark);
  return last != std::string::npos && text[last] == ']';
}

std::string mark(std::string argument) {
  if (ends_with_bracket(argument)) argument.push_back(kMark);
  return argument;
}

CLI::Option* unmarked(CLI::Option* option) {
  const auto take_off = [](std::string& value) {
    if (ends_with_bracket(value) && value.back() == kMark) value.pop_back();
    return std::string();
  };
  return option->transform(CLI::Validator(take_off, ""));  // before all checks
}

/// CLI11's own checks say "Value 0 not in range 0.000000 to 1797693134862315..." (308 digits).
CLI::Validator number_that(bool (*conforms)(double), const std::string& what) {
  const auto check = [conforms, what](const std::string& text) {
    double number = 0;
    const bool right = CLI::detail::lexical_cast(text, number) && conforms(number);
    return right ? std::string() : "'" + text + "' is not " + what;
  };
  return {check, ""};
}

}  // namespace

// ---- Option ----

Option Option::required() const { return Option(option_->required()); }
Option Option::show_default() const { return Option(option_->capture_default_str()); }
Option Option::value_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::help_text(const std::string& text) const { return Option(option_->option_text(text)); }
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::separated_by(char separator) const { return Option(option_->delimiter(separator)); }
Option Option::in_range(int least, int most) const { return Option(option_->check(CLI::Range(least, most))); }

Option Option::in_range(std::uint64_t least, std::uint64_t most) const {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::in_range(double least, double most) const { return Option(option_->check(CLI::Range(least, most))); }
Option Option::positive() const {
  return Option(option_->check(number_that([](double number) { return number > 0; }, "a number over 0")));
}
Option Option::non_negative() const {
  return Option(option_->check(number_that([](double number) { return number >= 0; }, "a number from 0 up")));
}

Option Option::non_negative_or(const std::string& word) const {
  return Option(option_->check(CLI::Validator(
      [word](std::string& text) {
        double number = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool right = error == std::errc() && end == text.data() + text.size() && number >= 0;
        return right || text == word ? std::string()
                                     : "'" + text + "' is neither a number that is not negative nor " + word;
      },
      "NUMBER|" + word)));
}

Option Option::one_of(std::vector<std::string> values) const {
  return Option(option_->check(CLI::IsMember(std::move(values))));
}

Option Option::not_empty() const {
  return Option(option_->check(
      CLI::Validator([](std::string& text) { return std::string(text.empty() ? "it is empty" : ""); }, "")));
}

Option Option::existing_directory() const { return Option(option_->check(CLI::ExistingDirectory)); }

// ---- Command ----

template <typename Value>
Option Command::option(const std::string& names, Value& value, const std::string& description) const {
  CLI::Option* const option = app_->add_option(names, value, description);
  constexpr bool kOfText = std::is_same_v<Value, std::string> || std::is_same_v<Value, std::vector<std::string>>;
  return Option(kOfText ? unmarked(option) : option);
}
template Option Command::option(const std::string&, std::string&, const std::string&) const;
template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, long long&, const std::string&) const;
template Option Command::option(const std::string&, unsigned&, const std::string&) const;
template Option Command::option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::option(const std::string&, double&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&) const;

Option Command::flag(const std::string& names, bool& value, const std::string& description) const {
  return Option(app_->add_flag(names, value, description));
}

Option Command::choice_of_number(const std::string& names, const char* value_name,
                                 std::vector<std::pair<std::string, long long>> choices, const std::string& description,
                                 std::function<void(long long)> chosen) const {
  // The help and the errors list the choices in the map's order, by name.
  const std::map<std::string, long long> sorted(choices.begin(), choices.end());
  return Option(app_->add_option_function<long long>(
                        names, [chosen = std::move(chosen)](const long long& number) { chosen(number); }, description)
                    ->type_name(value_name)
                    ->transform(CLI::CheckedTransformer(sorted)));
}

Command Command::subcommand(const std::string& name, const std::string& description) const {
  return Command(app_->add_subcommand(name, description)->fallthrough());
}

void Command::require_subcommand() const { app_->require_subcommand(1); }

void Command::on_use(std::function<void()> action) const { app_->callback(std::move(action)); }

bool Command::parsed() const { return app_->parsed(); }

// ---- Program ----

Program::Program(const std::string& description, const std::string& name)
    : Command(std::make_unique<CLI::App>(description, name).release()), owned_(app_) {}

Program::~Program() = default;

void Program::version(const std::string& text) { app_->set_version_flag("--version", text); }

void Program::footer(const std::string& text) { app_->footer(text); }

std::optional<int> Program::parse(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) arguments.push_back(mark(argv[i]));
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  try {
    app_->parse(argc, pointers.data());
  } catch (const CLI::ParseError& error) {
    std::ostringstream complaint;
    const int status = app_->exit(error, std::cout, complaint);
    std::string text = complaint.str();
    std::erase(text, kMark);
    std::cerr << text;
    return printed(status);
  }
  return std::nullopt;
}

int Program::printed(int status) const {
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush().good();
  if (whole || status != 0) return status;
  std::cerr << app_->get_name() << ": the standard output could not be written\n";
  return 1;
}

}  // namespace lrpc::command_line
