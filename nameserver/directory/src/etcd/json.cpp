#include "etcd/json.h"

#include <charconv>
#include <limits>

#include "etcd/base64.h"

namespace lrpc::directory {
namespace {

/// Whether arrays and objects in it are nested no deeper than kDeepestJson. (The parser's own callbacks would say so,
/// too, but make it compare each object with all others around it.)
bool is_shallow(std::string_view text) noexcept {
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
  for (const char c : text) {
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return false;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return true;
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  if (!is_shallow(text)) return std::nullopt;
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  return parsed;
}

const Json* member(const Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

std::optional<std::string_view> text_of(const Json& value, const char* key) {
  const Json* const found = member(value, key);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return found->get_ref<const std::string&>();
}

std::optional<std::string> bytes_of(const Json& value, const char* key) {
  const auto text = text_of(value, key);
  return text ? from_base64(*text) : std::nullopt;
}

std::optional<std::int64_t> integer_of(const Json& value, const char* key) {
  const Json* const found = member(value, key);
  if (found == nullptr) return std::nullopt;
  if (found->is_number_unsigned()) {
    const auto number = found->get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (found->is_number_integer()) return found->get<std::int64_t>();
  const auto text = text_of(value, key);
  if (!text) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return number;
}

}  // namespace lrpc::directory
