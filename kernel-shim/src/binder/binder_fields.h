// Writer and reader of the fields of binder messages. Bytes from a socket may be hostile: the reader checks every
// length against the bytes that are left before it touches or allocates anything, and remembers the first fault.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/little_endian.h"

namespace lrpc::shim {

inline Error bad_message(std::string what) { return {Errc::bad_message, "bad binder message: " + std::move(what)}; }

/// Printable ASCII without space, not too long. Whether a name may be empty depends on the message.
inline bool plausible_name(std::string_view name) noexcept {
  return name.size() <= kMaxNameLength && std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

/// `text` cut to `most` bytes, not inside a UTF-8 character.
inline std::string_view cut_text(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return text.substr(0, end);
}

/// Appends fields to a packet of at most kMaxBinderMessage bytes. What does not fit is not written: see overflow().
class BinderWriter {
 public:
  static constexpr bool kReads = false;

  template <std::unsigned_integral Int>
  void integer(const Int& value) {
    std::array<std::byte, sizeof(Int)> bytes;
    ByteWriter(bytes.data()).number(value);
    raw(bytes);
  }
  void name(const std::string& value) {
    check(plausible_name(value), "a name is too long or has characters that names cannot have");
    const auto cut = std::span(value).first(std::min(value.size(), kMaxNameLength));
    integer(static_cast<std::uint8_t>(cut.size()));
    raw(std::as_bytes(cut));
  }
  void text(std::string_view value) {
    if (value.size() > kMaxBinderMessage) {
      overflow_ = true;
      return;
    }
    integer(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }
  void reason(std::string_view value) { text(cut_text(value, kMaxReasonLength)); }
  void nonce(const Nonce& value) { raw(std::as_bytes(std::span(value))); }
  void raw(std::span<const std::byte> bytes) {
    if (bytes.size() > kMaxBinderMessage - out_.size()) {
      overflow_ = true;
      return;
    }
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  /// The size of a sequence; the caller then writes its elements.
  template <class T>
  void count(const std::vector<T>& sequence, std::size_t /*most*/, std::size_t /*element_size*/) {
    integer(static_cast<std::uint32_t>(std::min<std::size_t>(sequence.size(), 0xffff'ffffU)));
  }
  void check(bool good, const char* wrong) noexcept {
    if (!good && wrong_ == nullptr) wrong_ = wrong;
  }

  /// Overwrites the number at offset `at`.
  void patch(std::size_t at, std::uint32_t value) noexcept { ByteWriter(out_.data() + at).number(value); }
  [[nodiscard]] std::size_t size() const noexcept { return out_.size(); }
  [[nodiscard]] bool overflow() const noexcept { return overflow_; }
  [[nodiscard]] const char* wrong() const noexcept { return wrong_; }
  [[nodiscard]] std::vector<std::byte> take() noexcept { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
  bool overflow_ = false;
  const char* wrong_ = nullptr;
};

/// Takes fields from hostile bytes. After the first fault every field reads as zero and nothing is touched any more.
class BinderReader {
 public:
  static constexpr bool kReads = true;
  explicit BinderReader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  template <std::unsigned_integral Int>
  void integer(Int& value) {
    value = ByteReader(take(sizeof(Int), "it ends inside a number")).number<Int>();
  }
  void name(std::string& value) {
    std::uint8_t length = 0;
    integer(length);
    characters(value, length, "it ends inside a name");
    check(plausible_name(value), "a name has characters that names cannot have");
  }
  void text(std::string& value) {
    std::uint32_t length = 0;
    integer(length);
    characters(value, length, "it ends inside a text");
  }
  void reason(std::string& value) {
    std::uint32_t length = 0;
    integer(length);
    check(length <= kMaxReasonLength, "its reason is too long");
    if (wrong_ == nullptr) characters(value, length, "it ends inside its reason");
  }
  void nonce(Nonce& value) {
    const auto from = take(value.size(), "it ends inside a fixed field");
    std::ranges::copy(from, std::as_writable_bytes(std::span(value)).begin());
  }
  /// Makes room for a sequence of at most `most` elements, of which each takes at least `element_size` bytes.
  template <class T>
  void count(std::vector<T>& sequence, std::size_t most, std::size_t element_size) {
    std::uint32_t size = 0;
    integer(size);
    check(size <= most && size <= left_.size() / element_size, "a count is higher than the message can hold");
    sequence.clear();
    if (wrong_ == nullptr) sequence.resize(size);
  }
  void check(bool good, const char* wrong) noexcept {
    if (good || wrong_ != nullptr) return;
    wrong_ = wrong;
    left_ = {};
  }

  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  [[nodiscard]] const char* wrong() const noexcept { return wrong_; }

 private:
  std::span<const std::byte> take(std::size_t size, const char* wrong) noexcept {
    check(size <= left_.size(), wrong);
    if (wrong_ != nullptr) return {};
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  void characters(std::string& value, std::size_t length, const char* wrong) {
    const auto bytes = take(length, wrong);
    value.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  std::span<const std::byte> left_;
  const char* wrong_ = nullptr;
};

}  // namespace lrpc::shim
