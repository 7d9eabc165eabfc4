#include "lrpc/stubgen/language/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lrpc::stubgen {

void Diagnostics::error(Location at, std::string message, std::string hint) {
  add(Severity::error, at, std::move(message));
  if (!hint.empty()) note(at, std::move(hint));
}
void Diagnostics::warning(Location at, std::string message) { add(Severity::warning, at, std::move(message)); }
void Diagnostics::note(Location at, std::string message) { add(Severity::note, at, std::move(message)); }

void Diagnostics::add(Severity severity, Location at, std::string message) {
  if (severity == Severity::error) ++errors_;
  if (severity != Severity::note) last_dropped_ = errors_ > kMaxErrors || kept_.size() > 4 * kMaxErrors;
  if (!last_dropped_) kept_.push_back({severity, at, std::move(message)});
}

std::string Diagnostics::text(std::string_view file) const {
  // Later phases report earlier lines: sort all in the file's order, each note after the diagnostic that it belongs to.
  std::vector<std::pair<Location, const Diagnostic*>> ordered;
  for (const Diagnostic& diagnostic : kept_) {
    const bool note = diagnostic.severity == Severity::note && !ordered.empty();
    ordered.emplace_back(note ? ordered.back().first : diagnostic.at, &diagnostic);
  }
  std::ranges::stable_sort(ordered, {}, [](const auto& one) { return one.first; });
  constexpr std::string_view kWords[] = {"error", "warning", "note"};  // in the order of Severity
  std::string out;
  for (const auto& [place, entry] : ordered)
    out += fmt::format("{}:{}:{}: {}: {}\n", file, entry->at.line, entry->at.column,
                       kWords[static_cast<std::size_t>(entry->severity)], entry->message);
  if (errors_ > kMaxErrors) out += fmt::format("{}: {} more errors are not shown\n", file, errors_ - kMaxErrors);
  return out;
}

}  // namespace lrpc::stubgen
