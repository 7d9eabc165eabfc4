// XDR (RFC 4506): words of four bytes, the highest byte first; bytes are padded to whole words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

/// What opaque data of `size` bytes takes, without its length (RFC 4506 §4.9).
[[nodiscard]] constexpr std::size_t xdr_padded(std::size_t size) noexcept { return (size + 3) & ~std::size_t{3}; }

class XdrWriter {
 public:
  XdrWriter& word(std::uint32_t value) {
    WireWriter(grow(4)).put(value);
    return *this;
  }
  XdrWriter& hyper(std::uint64_t value) {
    WireWriter(grow(8)).put(value);
    return *this;
  }
  /// Variable-length opaque data, or a string: its length, its bytes, zeros.
  XdrWriter& opaque(std::span<const std::byte> bytes) {
    word(static_cast<std::uint32_t>(bytes.size()));
    std::byte* const to = grow(xdr_padded(bytes.size()));
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
    return *this;
  }
  XdrWriter& text(std::string_view text) { return opaque(std::as_bytes(std::span(text))); }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  std::byte* grow(std::size_t size) {
    bytes_.resize(bytes_.size() + size);
    return bytes_.data() + bytes_.size() - size;
  }
  std::vector<std::byte> bytes_;
};

/// Reads hostile bytes: once something is missing or too long, right() is false and all else reads as zero.
class XdrReader {
 public:
  explicit XdrReader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  std::uint32_t word() noexcept {
    const std::span<const std::byte> raw = take(4);
    return raw.empty() ? 0 : WireReader(raw.data()).get<std::uint32_t>();
  }
  std::uint64_t hyper() noexcept {
    const std::uint64_t high = word();
    return high << 32 | word();
  }
  /// At most `most` bytes; they lie in what is being read.
  std::span<const std::byte> opaque(std::size_t most) noexcept {
    const std::size_t size = word();
    if (size > most) right_ = false;
    const std::span<const std::byte> padded = take(xdr_padded(size));
    return right_ ? padded.first(size) : padded;
  }
  std::string_view text(std::size_t most) noexcept {
    const std::span<const std::byte> bytes = opaque(most);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  [[nodiscard]] bool right() const noexcept { return right_; }
  /// Right, and nothing is left.
  [[nodiscard]] bool at_end() const noexcept { return right_ && left_.empty(); }
  /// What is left.
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
