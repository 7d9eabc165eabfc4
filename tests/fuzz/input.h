// A fuzzer's input as a small program: numbers and byte strings are taken from its front. After its end all are zero or
// empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace lrpc::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) noexcept : left_(std::as_bytes(std::span(data, size))) {}
  [[nodiscard]] bool more() const noexcept { return !left_.empty(); }
  [[nodiscard]] std::uint8_t byte() noexcept {
    const auto one = bytes(1);
    return one.empty() ? std::uint8_t{0} : std::to_integer<std::uint8_t>(one[0]);
  }
  // The low byte first, in two statements: so a kept input means the same with every compiler.
  [[nodiscard]] std::uint16_t two() noexcept {
    const unsigned low = byte();
    return static_cast<std::uint16_t>(low | unsigned{byte()} << 8);
  }
  [[nodiscard]] std::uint32_t four() noexcept {
    const std::uint32_t low = two();
    return low | std::uint32_t{two()} << 16;
  }
  /// The next `count` bytes, or as many as are left.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) noexcept {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  [[nodiscard]] std::span<const std::byte> rest() noexcept { return bytes(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

/// Aborts in every build if `good` is false: something must hold for the code under attack.
inline void require(bool good, const char* what) noexcept {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace lrpc::fuzz
