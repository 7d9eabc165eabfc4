// Checks and describes a composition before anything is made.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "netrpc/composite/micro_protocol.h"

namespace lrpc::netrpc::composite {

namespace {

constexpr std::string_view kPredefined[] = {kMessagePoppedToCp.name,
                                            kMessagePoppedFromCp.name,
                                            kMessagePushedToCp.name,
                                            kMessagePushedFromCp.name,
                                            kMessageInsertedIntoBag.name,
                                            kMessageDeletedFromBag.name,
                                            kMessageReadyToBeSent.name,
                                            kCallEnded.name,
                                            kRequestEnded.name};

using Kinds = std::vector<const MicroKind*>;

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

Kinds::const_iterator exporter(const Kinds& kinds, std::string_view name) {
  return std::ranges::find_if(kinds, [&](const MicroKind* one) { return has(one->exports, name); });
}

}  // namespace

std::vector<ProtocolKind::MicroError> check_composition(const std::vector<const MicroKind*>& kinds) {
  std::vector<ProtocolKind::MicroError> errors;
  const auto there = [&](std::string_view name) {
    return std::ranges::any_of(kinds, [&](const MicroKind* one) { return one->name == name; });
  };
  for (auto at = kinds.begin(); at != kinds.end(); ++at) {
    const MicroKind& kind = **at;
    const auto before = [&](const auto& is_so) { return std::find_if(kinds.begin(), at, is_so) != at; };
    const auto wrong = [&](std::string text) {
      errors.push_back({static_cast<std::size_t>(at - kinds.begin()), std::move(text)});
    };
    if (before([&](const MicroKind* one) { return one->name == kind.name; }))
      wrong(fmt::format("{} is there twice, take one out", kind.name));
    if (kind.verifies && before([](const MicroKind* one) { return one->verifies; }))
      wrong(fmt::format("{} verifies messages, and another one does already, take one out", kind.name));
    if (kind.style != CallStyle::none && before([](const MicroKind* one) { return one->style != CallStyle::none; }))
      wrong(fmt::format("{} carries calls, and another one does already, take one out", kind.name));
    if (kind.maps && before([](const MicroKind* one) { return one->maps; }))
      wrong(fmt::format("{} maps attributes to headers, and another one does already, take one out", kind.name));
    for (const std::string_view name : kind.exports) {
      if (exporter(kinds, name) < at || has(kPredefined, name))
        wrong(fmt::format("{} exports '{}', which another one exports already", kind.name, name));
      if (name.find('.') != name.npos)  // only a micro-protocol's own events have one
        wrong(fmt::format("{} exports '{}', name it without '.'", kind.name, name));
    }
    for (const std::string_view name : kind.imports) {
      if (exporter(kinds, name) == kinds.end() && !has(kPredefined, name))
        wrong(fmt::format("{} imports '{}', which nobody exports, add a micro-protocol that does, or take {} out",
                          kind.name, name, kind.name));
      if (!kind.verifies && (name == kMessagePoppedToCp.name || name == kMessagePushedToCp.name))
        wrong(fmt::format("{} imports '{}', which only one that verifies may, import '{}'", kind.name, name,
                          kMessageInsertedIntoBag.name));
    }
    for (const auto& any : kind.needs)
      if (std::ranges::none_of(any, there))
        wrong(fmt::format("{} needs {}, add it", kind.name, fmt::join(any, " or ")));
    for (const std::string_view other : kind.excludes)
      if (there(other) &&
          !before([&](const MicroKind* one) { return one->name == other && has(one->excludes, kind.name); }))
        wrong(fmt::format("{} and {} exclude each other, take one out", kind.name, other));
  }
  return errors;
}

std::vector<std::string> describe_composition(const std::vector<const MicroKind*>& kinds) {
  std::vector<std::string> lines;
  const auto describe = [&](std::string_view by, std::string_view name) {
    std::vector<std::string_view> importers;
    for (const MicroKind* one : kinds)
      if (has(one->imports, name) || has(one->may_import, name)) importers.push_back(one->name);
    if (importers.empty() && by.empty()) return;
    lines.push_back(fmt::format("{}{}{}{}{}", name, by.empty() ? "" : ": ", by, importers.empty() ? "" : " -> ",
                                fmt::join(importers, ", ")));
  };
  for (const std::string_view name : kPredefined) describe({}, name);
  for (const MicroKind* kind : kinds)
    for (const std::string_view name : kind->exports) describe(kind->name, name);
  return lines;
}

}  // namespace lrpc::netrpc::composite
