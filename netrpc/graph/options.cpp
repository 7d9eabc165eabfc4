#include "netrpc/graph/options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

namespace lrpc::netrpc {

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept {
  int base = 10;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    base = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_rate(std::string_view text) noexcept {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(value >= 0 && value <= 1)) return std::nullopt;  // also refuses a NaN
  return value;
}

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  static constexpr std::array<std::pair<std::string_view, std::uint64_t>, 4> kUnits{
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, scale] : kUnits) {
    if (unit != name) continue;
    if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / scale) return std::nullopt;
    return Duration(static_cast<std::int64_t>(count * scale));
  }
  return std::nullopt;
}

namespace {

struct TypeRow {
  std::string_view name;
  std::string_view example;
  bool (*conforms)(std::string_view value);
};
const TypeRow& row_of(OptionType type) noexcept {
  static constexpr auto kAny = [](std::string_view /*value*/) { return true; };
  static constexpr std::array<TypeRow, 5> kRows{{
      {"text", "a text", kAny},
      {"number", "a number such as 8 or 0xa700", [](std::string_view it) { return parse_number(it).has_value(); }},
      {"rate", "a rate from 0 to 1 such as 0.05", [](std::string_view it) { return parse_rate(it).has_value(); }},
      {"duration", "a duration with its unit such as 250us, 10ms or 5s",
       [](std::string_view it) { return parse_duration(it).has_value(); }},
      {"list", "a list such as [10.0.0.1, 10.0.0.2]", kAny},
  }};
  static_assert(kRows.size() == static_cast<std::size_t>(OptionType::list) + 1);
  return kRows[static_cast<std::size_t>(type)];
}

/// The largest value of the option; empty: no bound. No duration is longer than a year, so that protocols can add and
/// multiply durations without overflow.
std::string_view most_of(const OptionDescription& option) noexcept {
  return option.most.empty() && option.type == OptionType::duration ? "31536000s" : option.most;
}

std::string describe(const std::vector<OptionDescription>& options, std::string_view indent) {
  std::string text;
  for (const OptionDescription& option : options) {
    const bool ranged = !option.least.empty() || !option.most.empty();
    text += fmt::format("{}{} ({}{}{}{}): {}\n", indent, option.name, row_of(option.type).name, ranged ? ", " : "",
                        ranged ? describe_range(option) : "", option.required ? ", required" : "", option.summary);
  }
  return text;
}

}  // namespace

bool conforms(OptionType type, std::string_view value) noexcept { return row_of(type).conforms(value); }

std::string_view describe(OptionType type) noexcept { return row_of(type).example; }

bool in_range(const OptionDescription& option, std::string_view value) noexcept {
  const auto within = [&](auto parse) {
    const auto given = parse(value);
    const std::string_view most = most_of(option);
    return (option.least.empty() || given >= parse(option.least)) && (most.empty() || given <= parse(most));
  };
  if (option.type == OptionType::number) return within(parse_number);
  if (option.type == OptionType::duration) return within(parse_duration);
  return true;
}

std::string describe_range(const OptionDescription& option) {
  const std::string_view most = most_of(option);
  if (most.empty()) return option.least.empty() ? "" : fmt::format("at least {}", option.least);
  return option.least.empty() ? fmt::format("at most {}", most) : fmt::format("{} to {}", option.least, most);
}

std::string describe(const ProtocolKinds& kinds) {
  std::string text;
  for (const ProtocolKind& kind : kinds.all()) {
    text += fmt::format("{}: {}\n{}", kind.name, kind.summary, describe(kind.options, "  "));
    for (const ProtocolKind::Micro& micro : kind.inside)
      text += fmt::format("  {{ {} }}\n{}", micro.name, describe(micro.options, "    "));
  }
  return text;
}

void Options::set_list(const std::string& name, std::vector<std::string> items) {
  values_[name] = fmt::format("[{}]", fmt::join(items, ", "));
  lists_[name] = std::move(items);
}

std::vector<std::string> Options::list(std::string_view name) const {
  const auto found = lists_.find(name);
  return found == lists_.end() ? std::vector<std::string>() : found->second;
}

std::string Options::text(std::string_view name, std::string_view fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string(fallback) : found->second;
}

std::uint64_t Options::number(std::string_view name, std::uint64_t fallback) const {
  return parse_number(text(name)).value_or(fallback);
}

double Options::rate(std::string_view name, double fallback) const { return parse_rate(text(name)).value_or(fallback); }

Duration Options::duration(std::string_view name, Duration fallback) const {
  return parse_duration(text(name)).value_or(fallback);
}

}  // namespace lrpc::netrpc
