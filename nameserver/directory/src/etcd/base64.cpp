#include "etcd/base64.h"

#include <array>
#include <cstdint>

namespace lrpc::directory {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 64;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::uint8_t>(i);
  return values;
}();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i)
      text.push_back(at + i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=');
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    std::size_t padding = 0;
    if (last && text[at + 3] == '=') padding = text[at + 2] == '=' ? 2 : 1;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 4 - padding; ++i) {
      const std::uint8_t value = kValues[static_cast<unsigned char>(text[at + i])];
      if (value == kNone) return std::nullopt;
      group |= std::uint32_t{value} << (18 - 6 * i);
    }
    if ((group & ((1U << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (std::size_t i = 0; i < 3 - padding; ++i) bytes.push_back(static_cast<char>(group >> (16 - 8 * i) & 255));
  }
  return bytes;
}

}  // namespace lrpc::directory
