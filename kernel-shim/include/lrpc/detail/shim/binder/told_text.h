// The text of an error that a procedure returns, on its way to the caller. It lies on the A-stack in place of the
// results, and the call status says so (call_status::kTold). Not on the path of a call that returns results.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/call/region.h"

namespace lrpc::shim {

/// The most bytes of a text that reach the caller. Small A-stacks carry less: the smallest slot has room for 102.
inline constexpr std::size_t kMostTold = 200;

/// A private copy of a text from an A-stack.
struct ToldText {
  std::array<char, kMostTold> bytes;
  std::size_t size = 0;
  [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), size}; }
};

/// The place of a text: the slot between its head and its limit, by this domain's own pointers. Empty if the A-stack is
/// not in a region (`limit` is null).
[[nodiscard]] std::span<std::byte> told_room(std::byte* image, const AStackLimit* limit) noexcept;

/// Writes as much of `text` as there is room for, without cutting a UTF-8 character. False if that is nothing. Never
/// blocks.
[[nodiscard]] bool put_told(std::span<std::byte> room, std::string_view text) noexcept;

/// The text that a peer says it has written: copied once, cut to the bound, and made safe to print. A byte becomes '?'
/// if it is not part of printable UTF-8 text, or would change the line or the direction of the text around it. Never
/// blocks.
[[nodiscard]] ToldText take_told(std::span<const std::byte> room) noexcept;

}  // namespace lrpc::shim
