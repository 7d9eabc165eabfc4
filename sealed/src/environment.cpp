#include "environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "lrpc/detail/shim/trap/trap.h"

namespace lrpc::sealed {
namespace {

/// Variables that C libraries and computing programs read. LC_* is passed, too.
constexpr std::array<std::string_view, 5> kByDefault{"PATH", "HOME", "LANG", "TERM", "TZ"};

bool passes_by_default(std::string_view name) {
  return name.starts_with("LC_") || std::ranges::find(kByDefault, name) != kByDefault.end();
}

}  // namespace

Result<std::vector<std::string>> environment_of_program(const char* const* launchers,
                                                        const std::vector<std::string>& wanted) {
  std::set<std::string_view> passed;
  std::map<std::string_view, std::string_view> set;  // later values replace earlier ones
  for (const std::string& one : wanted) {
    const std::size_t equals = one.find('=');
    const std::string_view name = std::string_view(one).substr(0, equals);
    if (name.empty() || one.find('\0') != std::string::npos)
      return Error{Errc::invalid_argument, "'" + one + "' is neither NAME nor NAME=VALUE of the environment"};
    if (name == shim::kSealedVariable)
      return Error{Errc::invalid_argument, std::string(name) + " tells a sealed program its binding and cannot be set"};
    if (equals == std::string::npos) {
      passed.insert(name);
    } else {
      set[name] = std::string_view(one).substr(equals + 1);
    }
  }
  std::vector<std::string> all{""};
  for (const char* const* at = launchers; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (name == shim::kSealedVariable || set.contains(name)) continue;
    if (passed.contains(name) || passes_by_default(name)) all.emplace_back(variable);
  }
  for (const auto& [name, value] : set) all.push_back(std::string(name).append("=").append(value));
  return all;
}

}  // namespace lrpc::sealed
