// An A-stack in separate memory: image and tail have their own allocations, so a sanitizer sees every access outside.
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "lrpc/detail/shim/call/pdl.h"
#include "lrpc/detail/shim/call/region.h"

namespace lrpc::fuzz {

class AStackMemory {
 public:
  explicit AStackMemory(const AStackClass& shared)
      : image_size_(shared.image_size),
        tail_size_(shared.tail_size),
        image_(new std::byte[image_size_]),
        tail_(tail_size_ == 0 ? nullptr : new std::byte[tail_size_]) {
    std::ranges::fill(image(), kFresh);
    std::ranges::fill(tail(), kFresh);
  }
  [[nodiscard]] shim::AStack astack() noexcept { return {.image = image_.get(), .tail = tail_.get()}; }
  [[nodiscard]] std::span<std::byte> image() noexcept { return {image_.get(), image_size_}; }
  [[nodiscard]] std::span<std::byte> tail() noexcept { return {tail_.get(), tail_size_}; }
  /// Fills the image and the tail with `bytes`, repeated.
  void fill(std::span<const std::byte> bytes) noexcept {
    if (bytes.empty()) return;
    std::size_t from = 0;
    for (const auto part : {image(), tail()})
      for (std::byte& byte : part) byte = bytes[from++ % bytes.size()];
  }
  [[nodiscard]] bool untouched() noexcept {
    const auto fresh = [](std::byte byte) { return byte == kFresh; };
    return std::ranges::all_of(image(), fresh) && std::ranges::all_of(tail(), fresh);
  }

 private:
  static constexpr std::byte kFresh{0xee};
  const std::size_t image_size_;
  const std::size_t tail_size_;
  const std::unique_ptr<std::byte[]> image_;
  const std::unique_ptr<std::byte[]> tail_;
};

}  // namespace lrpc::fuzz
