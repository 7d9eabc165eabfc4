// Numbers as bytes, little-endian on every machine.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace lrpc::shim {

/// Appends `value` to `to`.
template <std::unsigned_integral Int>
void append_number(std::string& to, Int value) {
  for (std::size_t i = 0; i < sizeof(Int); ++i) to.push_back(static_cast<char>(value >> (8 * i)));
}
void append_numbers(std::string& to, std::unsigned_integral auto... values) { (append_number(to, values), ...); }

/// Writes numbers and bytes into memory that is known to have room.
class ByteWriter {
 public:
  explicit ByteWriter(std::byte* to) noexcept : to_(to) {}

  template <std::unsigned_integral Int>
  void number(Int value) noexcept {
    for (std::size_t i = 0; i < sizeof(Int); ++i) *to_++ = static_cast<std::byte>(value >> (8 * i));
  }
  void put(std::span<const std::byte> bytes) noexcept {
    if (!bytes.empty()) std::memcpy(to_, bytes.data(), bytes.size());
    to_ += bytes.size();
  }

 private:
  std::byte* to_;
};

/// Reads numbers and bytes from untrusted bytes, which it does not copy. A read past the end gives zeros or an empty
/// span, and done() is false from then on.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : left_(bytes) {}

  template <std::unsigned_integral Int>
  [[nodiscard]] Int number() noexcept {
    Int value = 0;
    const auto bytes = take(sizeof(Int));
    for (std::size_t i = 0; i < bytes.size(); ++i)
      value = static_cast<Int>(value | static_cast<Int>(std::to_integer<Int>(bytes[i]) << (8 * i)));
    return value;
  }
  [[nodiscard]] std::span<const std::byte> take(std::size_t size) noexcept {
    if (size > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  /// For errors in what the bytes mean.
  void check(bool good) noexcept { good_ = good_ && good; }
  [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }
  /// Nothing was wrong so far.
  [[nodiscard]] bool good() const noexcept { return good_; }
  /// Nothing was wrong, and nothing is left.
  [[nodiscard]] bool done() const noexcept { return good_ && left_.empty(); }

 private:
  std::span<const std::byte> left_;
  bool good_ = true;
};

}  // namespace lrpc::shim
