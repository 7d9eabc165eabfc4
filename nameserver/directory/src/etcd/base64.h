// Base64 (RFC 4648 §4), as etcd's gateway writes keys and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lrpc::directory {

/// With padding. Allocates.
[[nodiscard]] std::string to_base64(std::string_view bytes);

/// The bytes, or nothing unless `text` is what to_base64() writes: with padding, unused bits zero, no spaces.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace lrpc::directory
