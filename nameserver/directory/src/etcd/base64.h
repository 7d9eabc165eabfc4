// Base64 (RFC 4648 §4), as etcd's gateway writes keys and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrpc::directory {

/// With padding. Allocates.
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// The bytes, or nothing if `text` is not what to_base64() writes: padding is required, unused bits are zero, no
/// spaces.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace lrpc::directory
