// The only file that includes CLI11.
#include "lrpc/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <string>
#include <system_error>
#include <utility>

namespace lrpc::command_line {

// ---- Option ----

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::show_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::value_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

Option Option::help_text(const std::string& text) const {
  option_->option_text(text);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::separated_by(char separator) const {
  option_->delimiter(separator);
  return *this;
}

Option Option::in_range(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::in_range(std::uint64_t least, std::uint64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::in_range(double least, double most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::non_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option Option::non_negative_or(const std::string& word) const {
  option_->check(CLI::Validator(
      [word](std::string& text) {
        double number = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool right = error == std::errc() && end == text.data() + text.size() && number >= 0;
        return right || text == word ? std::string()
                                     : "'" + text + "' is neither a number that is not negative nor " + word;
      },
      "NUMBER|" + word));
  return *this;
}

Option Option::one_of(std::vector<std::string> values) const {
  option_->check(CLI::IsMember(std::move(values)));
  return *this;
}

Option Option::existing_directory() const {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

// ---- Command ----

Option Command::option(const std::string& names, std::string& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, int& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, long long& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, unsigned& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, std::uint64_t& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, double& value, const std::string& description) const {
  return Option(app_->add_option(names, value, description));
}

Option Command::option(const std::string& names, std::vector<std::string>& values,
                       const std::string& description) const {
  return Option(app_->add_option(names, values, description));
}

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
  return Command(app_->add_subcommand(name, description));
}

void Command::require_subcommand() const { app_->require_subcommand(1); }

void Command::on_use(std::function<void()> action) const { app_->callback(std::move(action)); }

bool Command::parsed() const { return app_->parsed(); }

// ---- Program ----

Program::Program(const std::string& description, const std::string& name)
    : Program(std::make_unique<CLI::App>(description, name)) {}

Program::Program(std::unique_ptr<CLI::App> app) : Command(app.get()), owned_(std::move(app)) {}

Program::~Program() = default;

void Program::version(const std::string& text) { app_->set_version_flag("--version", text); }

void Program::footer(const std::string& text) { app_->footer(text); }

std::optional<int> Program::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error);
  }
  return std::nullopt;
}

}  // namespace lrpc::command_line
