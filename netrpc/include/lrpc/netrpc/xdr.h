// XDR (RFC 4506), the encoding of Sun RPC's arguments and results: words of four bytes, the highest byte first. Bytes
// are padded to whole words. A struct is its members one after another; an enum is a word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

/// Bytes that opaque data of `size` bytes takes, without its length (RFC 4506 §4.9).
[[nodiscard]] constexpr std::size_t xdr_padded(std::size_t size) noexcept { return (size + 3) & ~std::size_t{3}; }

/// Writes values one behind the other into memory that it owns. After clear() it allocates only for a longer message
/// than any before. Used by one thread at a time.
class XdrWriter {
 public:
  XdrWriter& word(std::uint32_t value) {
    WireWriter(grow(4)).put(value);
    return *this;
  }
  XdrWriter& integer(std::int32_t value) { return word(static_cast<std::uint32_t>(value)); }
  XdrWriter& hyper(std::uint64_t value) {
    WireWriter(grow(8)).put(value);
    return *this;
  }
  XdrWriter& boolean(bool value) { return word(value ? 1 : 0); }
  XdrWriter& real(float value) { return word(std::bit_cast<std::uint32_t>(value)); }
  XdrWriter& real(double value) { return hyper(std::bit_cast<std::uint64_t>(value)); }
  /// Fixed-length opaque data: the bytes, padded with zeros. Their number is not written; the reader knows it.
  XdrWriter& fixed(std::span<const std::byte> bytes) {
    std::byte* const to = grow(xdr_padded(bytes.size()));
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return *this;
  }
  /// Variable-length opaque data, or a string: its length, then its bytes, padded with zeros.
  XdrWriter& opaque(std::span<const std::byte> bytes) {
    return word(static_cast<std::uint32_t>(bytes.size())).fixed(bytes);
  }
  XdrWriter& text(std::string_view text) { return opaque(std::as_bytes(std::span(text))); }

  /// The bytes written so far; valid until the next change.
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }
  void clear() noexcept { bytes_.clear(); }

 private:
  std::byte* grow(std::size_t size) {
    bytes_.resize(bytes_.size() + size);
    return bytes_.data() + bytes_.size() - size;
  }
  std::vector<std::byte> bytes_;
};

/// Reads hostile bytes, which it does not own. After the first value that is missing, too long or invalid, right() is
/// false and all further values are zero. Constant work for each value; never allocates.
class XdrReader {
 public:
  explicit XdrReader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  std::uint32_t word() noexcept {
    const std::span<const std::byte> raw = take(4);
    return raw.empty() ? 0 : WireReader(raw.data()).get<std::uint32_t>();
  }
  std::int32_t integer() noexcept { return static_cast<std::int32_t>(word()); }
  std::uint64_t hyper() noexcept {
    const std::span<const std::byte> raw = take(8);
    return raw.empty() ? 0 : WireReader(raw.data()).get<std::uint64_t>();
  }
  bool boolean() noexcept {
    const std::uint32_t value = word();
    if (value > 1) right_ = false;
    return value == 1;
  }
  float real() noexcept { return std::bit_cast<float>(word()); }
  double long_real() noexcept { return std::bit_cast<double>(hyper()); }
  /// `size` bytes, not copied. Does not check that the padding is zero; other implementations do not either.
  std::span<const std::byte> fixed(std::size_t size) noexcept {
    const std::span<const std::byte> padded = take(xdr_padded(size));
    return right_ ? padded.first(size) : padded;
  }
  /// At most `most` bytes, not copied.
  std::span<const std::byte> opaque(std::size_t most) noexcept {
    const std::size_t size = word();
    if (size > most) right_ = false;
    return right_ ? fixed(size) : std::span<const std::byte>();
  }
  std::string_view text(std::size_t most) noexcept {
    const std::span<const std::byte> bytes = opaque(most);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[nodiscard]] bool right() const noexcept { return right_; }
  /// All values were right, and no bytes are left.
  [[nodiscard]] bool at_end() const noexcept { return right_ && left_.empty(); }
  /// The bytes that are not read yet.
  [[nodiscard]] std::span<const std::byte> rest() const noexcept {
    return right_ ? left_ : std::span<const std::byte>();
  }

 private:
  std::span<const std::byte> take(std::size_t size) noexcept {
    right_ = right_ && size <= left_.size();
    if (!right_) return {};
    const std::span<const std::byte> taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  std::span<const std::byte> left_;
  bool right_ = true;
};

}  // namespace lrpc::netrpc
