// A fuzzer's input as a little program: numbers and byte strings taken from its front; behind its end all is zero and
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
  // The low half first, by every compiler: a kept input means one thing.
  [[nodiscard]] std::uint16_t two() noexcept {
    const unsigned low = byte();
    return static_cast<std::uint16_t>(low | unsigned{byte()} << 8);
  }
  [[nodiscard]] std::uint32_t four() noexcept {
    const std::uint32_t low = two();
    return low | std::uint32_t{two()} << 16;
  }
  /// The next `count`, or what there is.
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t count) noexcept {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }
  [[nodiscard]] std::span<const std::byte> rest() noexcept { return bytes(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

/// What must be true of the code under attack, in every build.
inline void require(bool good, const char* what) noexcept {
  if (good) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

}  // namespace lrpc::fuzz
