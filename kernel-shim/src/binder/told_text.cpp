#include "lrpc/detail/shim/binder/told_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "binder_fields.h"
#include "lrpc/detail/shim/call/value.h"

namespace lrpc::shim {
namespace {

using Length = std::uint16_t;

/// Whether a terminal or a log shows `point` as a character of its own.
bool harmless(std::uint32_t point) noexcept {
  const auto within = [point](std::uint32_t first, std::uint32_t last) { return point >= first && point <= last; };
  return !within(0, 0x1f) && !within(0x7f, 0x9f) &&          // control characters
         !within(0xd800, 0xdfff) && point <= 0x10ffff &&     // no characters
         point != 0x61c && !within(0x200b, 0x200f) &&        // direction marks, and what has no width
         !within(0x2028, 0x202e) && !within(0x2060, 0x206f)  // line ends and direction
         && point != 0xad && point != 0x180e && point != 0xfeff && !within(0xfff9, 0xfffb) &&
         !within(0xe0000, 0xe0fff);  // invisible
}

/// The length of the harmless UTF-8 character at the beginning of `text`, which is not empty; 0 if there is none.
std::size_t harmless_character(std::string_view text) noexcept {
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};  // least by length; less is overlong
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = lead < 0x80             ? 1
                           : (lead & 0xe0) == 0xc0 ? 2
                           : (lead & 0xf0) == 0xe0 ? 3
                           : (lead & 0xf8) == 0xf0 ? 4
                                                   : 0;
  if (size == 0 || size > text.size()) return 0;
  std::uint32_t point = size == 1 ? lead : lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte & 0x3fU);
  }
  return point >= kLeast[size] && harmless(point) ? size : 0;
}

}  // namespace

std::span<std::byte> told_room(std::byte* image, const AStackLimit* limit) noexcept {
  if (image == nullptr || limit == nullptr) return {};
  return {image, static_cast<std::size_t>(reinterpret_cast<const std::byte*>(limit) - image)};
}

bool put_told(std::span<std::byte> room, std::string_view text) noexcept {
  if (room.size() <= sizeof(Length)) return false;
  text = cut_text(text, std::min(kMostTold, room.size() - sizeof(Length)));
  if (text.empty()) return false;
  const auto length = static_cast<Length>(text.size());
  std::memcpy(room.data(), &length, sizeof length);
  std::memcpy(room.data() + sizeof length, text.data(), text.size());
  return true;
}

ToldText take_told(std::span<const std::byte> room) noexcept {
  ToldText told;
  if (room.size() <= sizeof(Length)) return told;
  std::array<std::byte, sizeof(Length) + kMostTold> copy;
  const std::size_t copied = std::min(copy.size(), room.size());
  std::memcpy(copy.data(), room.data(), copied);
  copies_are_made();
  Length length = 0;
  std::memcpy(&length, copy.data(), sizeof length);
  told.size = std::min<std::size_t>(length, copied - sizeof length);
  std::memcpy(told.bytes.data(), copy.data() + sizeof length, told.size);
  for (std::size_t at = 0; at < told.size;) {
    const std::size_t size = harmless_character(told.view().substr(at));
    if (size == 0) told.bytes[at] = '?';
    at += std::max<std::size_t>(size, 1);
  }
  return told;
}

}  // namespace lrpc::shim
