// Moves of variable-size parameters (`string<N>`, `bytes<N>`) between an A-stack and private memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/value.h"
#include "lrpc/detail/shim/stub_access.h"

namespace lrpc {

/// Where a result of parameter `p` is written: the inline window if the whole bound fits there, else the tail. Static,
/// so that a procedure can write before it knows how long its result will be. Inout parameters use this place both
/// ways.
[[nodiscard]] constexpr std::byte* result_window(std::byte* image, std::byte* tail,
                                                 const VariableParameter& p) noexcept {
  return p.bound <= p.inline_capacity ? image + p.inline_offset : tail + p.tail_offset;
}
/// Writes the length word of a value that stands in result_window().
/// Precondition: size ≤ p.bound.
inline void put_result_length(std::byte* image, const VariableParameter& p, std::size_t size) noexcept {
  const auto word = static_cast<std::uint32_t>(size) | (p.bound <= p.inline_capacity ? 0 : VariableParameter::kInTail);
  put_scalar<CopyCode::F>(image + p.length_offset, word);
}

/// A result where it stands, for a procedure to write; that of an inout parameter holds `size` bytes.
/// Precondition: size ≤ p.bound.
[[nodiscard]] constexpr Buffer result_buffer(std::byte* image, std::byte* tail, const VariableParameter& p,
                                             std::size_t size = 0) noexcept {
  return Buffer(std::span(result_window(image, tail, p), p.bound), size);
}
/// Whether a procedure has left result_buffer() where it was, within its bound.
[[nodiscard]] constexpr bool is_result(std::byte* image, std::byte* tail, const VariableParameter& p,
                                       const Buffer& buffer) noexcept {
  return buffer.size() <= p.bound && buffer.data() == result_window(image, tail, p);
}
/// Copies the value of an inout parameter to where its result stands. Precondition: size ≤ p.bound.
template <CopyCode Code>
inline void put_result(std::byte* image, std::byte* tail, const VariableParameter& p, const Buffer& value) noexcept {
  if (value.size() != 0) copy_bytes<Code>(result_window(image, tail, p), value.data(), value.size());
  put_result_length(image, p, value.size());
}

/// Copies `value` onto the A-stack: into the inline window if it fits, else into the tail. Precondition: size ≤
/// p.bound.
template <CopyCode Code>
inline void put_variable(std::byte* image, std::byte* tail, const VariableParameter& p,
                         std::span<const std::byte> value) noexcept {
  const bool in_tail = value.size() > p.inline_capacity;
  put_scalar<Code>(image + p.length_offset,
                   static_cast<std::uint32_t>(value.size()) | (in_tail ? VariableParameter::kInTail : 0));
  if (!value.empty())
    copy_bytes<Code>(in_tail ? tail + p.tail_offset : image + p.inline_offset, value.data(), value.size());
}

/// What a length word says of a value.
struct VariableLength {
  std::uint32_t size = 0;
  bool in_tail = false;
};
/// Judges a peer's length word of parameter `p`; nullopt if it breaks the bounds.
[[nodiscard]] constexpr std::optional<VariableLength> judge_length(std::uint32_t word,
                                                                   const VariableParameter& p) noexcept {
  const std::uint32_t size = word & ~VariableParameter::kInTail;
  const bool in_tail = (word & VariableParameter::kInTail) != 0;
  // A tail exists exactly if some procedure of the class can need it; `p` says whether this parameter can. Where it
  // cannot, not even an empty value stands there.
  if (in_tail && p.bound <= p.inline_capacity) return std::nullopt;
  if (size > p.bound || (!in_tail && size > p.inline_capacity)) return std::nullopt;
  return VariableLength{size, in_tail};
}

/// Where a peer's value of parameter `p` stands, from one load of its length word; nullopt if the word breaks the
/// bounds. The bytes behind the span are still the peer's to change: copy them before looking at them.
[[nodiscard]] inline std::optional<std::span<std::byte>> locate_variable(std::byte* image, std::byte* tail,
                                                                         const VariableParameter& p) noexcept {
  const auto said = judge_length(get_scalar<CopyCode::E, std::uint32_t>(image + p.length_offset), p);
  if (!said) return std::nullopt;
  return std::span(said->in_tail ? tail + p.tail_offset : image + p.inline_offset, said->size);
}

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Copies a peer's text into private memory. False if it is longer than N or breaks the parameter's bounds.
template <CopyCode Code, std::size_t N>
[[nodiscard]] inline bool get_string(std::byte* image, std::byte* tail, const VariableParameter& p,
                                     String<N>& out) noexcept {
  const auto found = locate_variable(image, tail, p);
  if (!found) return false;
  count_copy(Code, found->size());
  return out.assign({reinterpret_cast<const char*>(found->data()), found->size()});
}

/// Copies a peer's argument into memory of the call, which has room for what the procedure may make of it. ok,
/// argument_too_long (bounds broken) or limit_reached. Throws std::bad_alloc.
template <class Context>
[[nodiscard]] inline Errc get_argument(Context& context, std::byte* image, std::byte* tail, const VariableParameter& p,
                                       Buffer& out) {
  const auto found = locate_variable(image, tail, p);
  if (!found) return Errc::argument_too_long;
  const std::size_t room = p.out ? p.bound : found->size();
  const std::span<std::byte> memory = detail::StubAccess::scratch(context, room);
  if (memory.size() < room) return Errc::limit_reached;
  if (!found->empty()) copy_bytes<CopyCode::E>(memory.data(), found->data(), found->size());
  out = Buffer(memory.first(room), found->size());
  return Errc::ok;
}
template <class Context>
[[nodiscard]] inline Errc get_argument(Context& context, std::byte* image, std::byte* tail, const VariableParameter& p,
                                       std::span<const std::byte>& out) {
  Buffer copy;
  const Errc copied = get_argument(context, image, tail, p, copy);
  out = copy.contents();
  return copied;
}

/// Copies a peer's result into the caller's buffer. ok, bad_result (bounds broken) or result_too_long (buffer too
/// small).
template <CopyCode Code>
[[nodiscard]] inline Errc get_buffer(std::byte* image, std::byte* tail, const VariableParameter& p,
                                     Buffer& out) noexcept {
  const auto found = locate_variable(image, tail, p);
  if (!found) return Errc::bad_result;
  count_copy(Code, found->size());
  return out.assign(*found) ? Errc::ok : Errc::result_too_long;
}

}  // namespace lrpc
