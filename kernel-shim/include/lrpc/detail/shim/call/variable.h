// Copies of variable-size parameters (`string<N>`, `bytes<N>`) between an A-stack and private memory.
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

/// Where a result of parameter `p` is written: the inline window if the whole bound fits there, otherwise the tail. The
/// place does not depend on the length, so a procedure can write before it knows the length of its result. Inout
/// parameters use this place in both directions.
[[nodiscard]] constexpr std::byte* result_window(std::byte* image, std::byte* tail,
                                                 const VariableParameter& p) noexcept {
  return p.never_in_tail() ? image + p.inline_offset : tail + p.tail_offset;
}
/// Writes the length word of a value that lies in result_window().
/// Precondition: size ≤ p.bound.
inline void put_result_length(std::byte* image, const VariableParameter& p, std::size_t size) noexcept {
  const auto word = static_cast<std::uint32_t>(size) | (p.never_in_tail() ? 0 : VariableParameter::kInTail);
  put_scalar<CopyCode::F>(image + p.length_offset, word);
}

/// The place of a result, for a procedure to write; for an inout parameter it holds `size` bytes.
/// Precondition: size ≤ p.bound.
[[nodiscard]] constexpr Buffer result_buffer(std::byte* image, std::byte* tail, const VariableParameter& p,
                                             std::size_t size = 0) noexcept {
  return Buffer(std::span(result_window(image, tail, p), p.bound), size);
}
/// Whether `buffer`, which a procedure has used, still views the result's place and is within its bound.
[[nodiscard]] constexpr bool is_result(std::byte* image, std::byte* tail, const VariableParameter& p,
                                       const Buffer& buffer) noexcept {
  return buffer.size() <= p.bound && buffer.data() == result_window(image, tail, p);
}
/// Copies the value of an inout parameter to the place of its result. Precondition: size ≤ p.bound.
template <CopyCode Code>
inline void put_result(std::byte* image, std::byte* tail, const VariableParameter& p, const Buffer& value) noexcept {
  if (value.size() != 0) copy_bytes<Code>(result_window(image, tail, p), value.data(), value.size());
  put_result_length(image, p, value.size());
}

/// Copies `value` onto the A-stack: into the inline window if it fits, otherwise into the tail. Precondition: size ≤
/// p.bound.
template <CopyCode Code>
inline void put_variable(std::byte* image, std::byte* tail, const VariableParameter& p,
                         std::span<const std::byte> value) noexcept {
  const bool in_tail = !p.never_in_tail() && value.size() > p.inline_capacity;
  put_scalar<Code>(image + p.length_offset,
                   static_cast<std::uint32_t>(value.size()) | (in_tail ? VariableParameter::kInTail : 0));
  if (!value.empty())
    copy_bytes<Code>(in_tail ? tail + p.tail_offset : image + p.inline_offset, value.data(), value.size());
}

/// What a length word says about a value.
struct VariableLength {
  std::uint32_t size = 0;
  bool in_tail = false;
};
/// Checks a peer's length word for parameter `p`; nullopt if it exceeds a bound.
[[nodiscard]] constexpr std::optional<VariableLength> judge_length(std::uint32_t word,
                                                                   const VariableParameter& p) noexcept {
  const std::uint32_t size = word & ~VariableParameter::kInTail;
  const bool in_tail = (word & VariableParameter::kInTail) != 0;
  // A tail exists exactly if some procedure of the class can need it; `p` says whether this parameter can. Where it
  // cannot, not even an empty value stands there.
  if (in_tail && p.never_in_tail()) return std::nullopt;
  if (size > p.bound || (!in_tail && size > p.inline_capacity)) return std::nullopt;
  return VariableLength{size, in_tail};
}

/// Where a peer's value of parameter `p` lies, from one load of its length word; nullopt if the word exceeds a bound.
/// The peer can still change the bytes in the span: copy them before looking at them.
[[nodiscard]] inline std::optional<std::span<std::byte>> locate_variable(std::byte* image, std::byte* tail,
                                                                         const VariableParameter& p) noexcept {
  const auto said = judge_length(get_scalar<CopyCode::E, std::uint32_t>(image + p.length_offset), p);
  if (!said) return std::nullopt;
  return std::span(said->in_tail ? tail + p.tail_offset : image + p.inline_offset, said->size);
}

[[nodiscard]] inline std::span<const std::byte> as_bytes(std::string_view text) noexcept {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Copies a peer's text into private memory. False if it is longer than N or exceeds a bound of the parameter.
template <CopyCode Code, std::size_t N>
[[nodiscard]] inline bool get_string(std::byte* image, std::byte* tail, const VariableParameter& p,
                                     String<N>& out) noexcept {
  const auto found = locate_variable(image, tail, p);
  if (!found) return false;
  count_copy(Code, found->size());
  return out.assign({reinterpret_cast<const char*>(found->data()), found->size()});
}

/// Copies a peer's argument into memory of the call; for an inout parameter, with room for the longest result. Returns
/// ok, argument_too_long (a bound is exceeded) or limit_reached. Throws std::bad_alloc.
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

/// Copies a peer's result into the caller's buffer. Returns ok, bad_result (a bound is exceeded) or result_too_long
/// (the buffer is too small).
template <CopyCode Code>
[[nodiscard]] inline Errc get_buffer(std::byte* image, std::byte* tail, const VariableParameter& p,
                                     Buffer& out) noexcept {
  const auto found = locate_variable(image, tail, p);
  if (!found) return Errc::bad_result;
  count_copy(Code, found->size());
  return out.assign(*found) ? Errc::ok : Errc::result_too_long;
}

}  // namespace lrpc
