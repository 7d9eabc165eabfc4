#include "name_pattern.h"

#include <cstddef>
#include <optional>

#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::nameserver {
namespace {

/// Whether one element of a pattern, other than a star, accepts a character; `after` is where the next element begins.
struct Element {
  bool accepts = false;
  std::size_t after = 0;
};

/// The bracket expression that begins at `at`, or none if nothing closes it.
std::optional<Element> bracket(std::string_view pattern, std::size_t at, char c) noexcept {
  std::size_t i = at + 1;
  const bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) ++i;
  const auto code = [](char one) { return static_cast<unsigned char>(one); };
  const auto member = [&](std::size_t& j) {  // one character of the list, and past it
    if (pattern[j] == '\\' && j + 1 < pattern.size()) ++j;
    return code(pattern[j++]);
  };
  bool found = false;
  for (bool first = true; i < pattern.size() && (first || pattern[i] != ']'); first = false) {
    const unsigned char low = member(i);
    unsigned char high = low;
    if (i + 1 < pattern.size() && pattern[i] == '-' && pattern[i + 1] != ']') high = member(++i);
    found = found || (low <= code(c) && code(c) <= high);
  }
  if (i >= pattern.size()) return std::nullopt;
  return Element{found != negated, i + 1};
}

Element element(std::string_view pattern, std::size_t at, char c) noexcept {
  if (pattern[at] == '?') return {true, at + 1};
  if (pattern[at] == '[')
    if (const auto list = bracket(pattern, at, c)) return *list;
  if (pattern[at] == '\\' && at + 1 < pattern.size()) return {pattern[at + 1] == c, at + 2};
  return {pattern[at] == c, at + 1};
}

/// Whether the bracket expression at `at` accepts any character that names can have; true if there is no such
/// expression.
bool has_any(std::string_view pattern, std::size_t at) noexcept {
  for (char c = '!'; c <= '~'; ++c) {
    const auto list = bracket(pattern, at, c);
    if (!list || (list->accepts && c != '@' && c != '/')) return true;
  }
  return false;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view name) noexcept {
  std::size_t p = 0;
  std::size_t n = 0;
  // Only the last star is tried again with more: any characters that an earlier star could take, it can leave to this
  // one.
  std::size_t after_star = std::string_view::npos;
  std::size_t taken_to = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      taken_to = n;
      continue;
    }
    if (p < pattern.size()) {
      if (const Element here = element(pattern, p, name[n]); here.accepts) {
        p = here.after;
        ++n;
        continue;
      }
    }
    if (after_star == std::string_view::npos) return false;
    p = after_star;
    n = ++taken_to;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string pattern_error(std::string_view pattern) {
  if (pattern.empty()) return "it is empty; '*' is for every name";
  if (pattern.size() > 4 * shim::kMaxNameLength) return "it is longer than any name";
  for (const char c : pattern) {
    if (c <= ' ' || c > '~') return "names are printable ASCII characters without space";
    if (c == '@') return "a name with '@' is on another host, where that host's policy decides";
    if (c == '/') return "names have no '/'";
  }
  std::size_t shortest = 0;
  for (std::size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '[' && !has_any(pattern, at)) return "there is no character in the list that begins with '['";
    if (pattern[at] != '*') ++shortest;
    at = pattern[at] == '*' ? at + 1 : element(pattern, at, 'a').after;
  }
  if (shortest > shim::kMaxNameLength) return "it is longer than any name";
  return {};
}

}  // namespace lrpc::nameserver
