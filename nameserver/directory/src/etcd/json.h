// Untrusted JSON: parsed without exceptions, bounded in depth, and checked at each access. The receiver of the text
// bounds its size.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lrpc::directory {

using Json = nlohmann::json;

/// The most levels of arrays and objects that are read; etcd's answers have 6.
inline constexpr int kDeepestJson = 16;

/// Nothing if `text` is not JSON, is deeper than kDeepestJson, or has text after the JSON. Allocates some ten times the
/// size of the text.
[[nodiscard]] std::optional<Json> parse_json(std::string_view text);

/// The member of an object; null if `value` is no object or has no such member.
[[nodiscard]] const Json* member(const Json& value, const char* key);
/// A member that is a text; otherwise nothing.
[[nodiscard]] std::optional<std::string_view> text_of(const Json& value, const char* key);
/// A member that is a text in base64, decoded.
[[nodiscard]] std::optional<std::string> bytes_of(const Json& value, const char* key);
/// A member that is an integer, written as a number or, as protobuf's JSON writes 64 bits, as a text of digits.
[[nodiscard]] std::optional<std::int64_t> integer_of(const Json& value, const char* key);

}  // namespace lrpc::directory
