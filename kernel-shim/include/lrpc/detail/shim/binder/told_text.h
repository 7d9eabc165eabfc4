// The text of an error that a procedure returns, on its way to the caller. It lies on the A-stack, where the results
// would lie, and the call status says so (call_status::kTold). Nothing of this is on the path of a call that returns
// results.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/call/region.h"

namespace lrpc::shim {

/// Most bytes of a text that reach the caller. Small A-stacks carry less: the smallest slot has room for 102.
inline constexpr std::size_t kMostTold = 200;

/// A text that was taken off an A-stack: a private copy.
struct ToldText {
  std::array<char, kMostTold> bytes;
  std::size_t size = 0;
  [[nodiscard]] std::string_view view() const noexcept { return {bytes.data(), size}; }
};

/// Where a text lies: all of a slot between its head and its limit, by this domain's own pointers. Empty if the A-stack
/// is not one of a region (no limit).
[[nodiscard]] std::span<std::byte> told_room(std::byte* image, const AStackLimit* limit) noexcept;

/// Writes as much of `text` as there is room for, not ending inside a UTF-8 character. False, and nothing is written,
/// if that is nothing. Never blocks.
[[nodiscard]] bool put_told(std::span<std::byte> room, std::string_view text) noexcept;

/// The text that a peer says it has written: copied once, cut to its bound, and made harmless. A byte that is not part
/// of printable UTF-8 text, or that would change the line or the direction of the text around it, becomes '?'. Never
/// blocks.
[[nodiscard]] ToldText take_told(std::span<const std::byte> room) noexcept;

}  // namespace lrpc::shim
