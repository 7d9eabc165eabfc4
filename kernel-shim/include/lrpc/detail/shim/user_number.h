// The numbers of users and groups in options and files.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lrpc::shim {

/// The user or group whose decimal number `text` is; none if it is anything else, or the highest number, which is
/// nobody's.
[[nodiscard]] inline std::optional<std::uint32_t> user_number(std::string_view text) noexcept {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  // The last number is nobody's: it stands for callers of other hosts.
  if (error != std::errc() || end != text.data() + text.size() || number == ~std::uint32_t{0}) return std::nullopt;
  return number;
}

}  // namespace lrpc::shim
