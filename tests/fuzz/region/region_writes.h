// What either hostile domain can do to the region that it shares: store whole words at critical places, and punch
// holes. The input chooses.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "conformance.types.h"
#include "input.h"
#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/region.h"

namespace lrpc::fuzz {

/// Stores as another domain does. `at` must be a multiple of 8.
inline void store(std::byte* at, std::uint64_t bits) {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)).store(bits, std::memory_order_relaxed);
}

inline std::uint64_t eight(Input& input) {
  const std::uint64_t high = input.four();
  return high << 32 | input.four();
}

/// 64 random bits, or plausible ones.
inline std::uint64_t bits(Input& input) {
  constexpr std::array<std::uint32_t, 14> kEdges{
      0, 1, 9, 64, 100, 255, 300, 2'000, 4'000, 100'000, 4'194'304, 0x7fff'ffff, 0x8000'0000, 0xffff'ffff};
  const std::uint8_t how = input.byte();
  const std::uint64_t edge = kEdges[how % kEdges.size()] + std::uint64_t{(how >> 4) & 1U};
  switch (how >> 5) {
    case 0: return edge;
    case 1: return edge << 32 | edge;
    case 2: return edge | 0x8000'0000;
    case 3: return (edge | 0x8000'0000) << 32;
    case 4: return 0x0101'0101'0101'0101 & eight(input);
    case 5: return ~std::uint64_t{0};
    default: return eight(input);
  }
}

/// A call word that looks like one of a generation near `generation`.
inline std::uint64_t call_word(Input& input, std::uint64_t generation) {
  const std::uint8_t how = input.byte();
  if (how == 0xff) return eight(input);
  const std::uint64_t of = generation + (how >> 2 & 3U) - 1;
  const std::uint64_t flags = std::uint64_t{input.byte()} & 0xfc;
  return (of & shim::CallWord::kGenerationMask) << shim::CallWord::kGenerationShift | flags | (how & 3U) |
         std::uint64_t{input.byte()} << 32 | (std::uint64_t{how} >> 7) << 48;
}

[[nodiscard]] inline shim::AStack any_astack(Input& input, const shim::Region& region) {
  return region.astack(input.byte() % region.layout().astack_count());
}

/// Writes some words of an image, up to the end of its slot.
inline void write_image(Input& input, const shim::Region& region, const shim::AStack& astack) {
  const std::size_t room = region.layout().classes()[astack.astack_class].slot_stride - sizeof(shim::AStackHead);
  const std::uint8_t first = input.byte();
  std::size_t at = std::size_t{first} * 8 % room / 8 * 8;
  for (std::size_t words = 1 + input.byte() % 8; words > 0 && at + 8 <= room; --words, at += 8)
    store(astack.image + at, bits(input));
}

/// Stores a new value and the old one in turns in a word at the start of an image, while the other domain reads it:
/// code that reads twice may see two values. Until `over`, or for some hundred microseconds.
template <class Over>
void flicker(Input& input, const shim::AStack& astack, Over&& over) {
  constexpr int kMost = 40'000;
  std::byte* const at = astack.image + std::size_t{input.byte()} % 4 * 8;
  const std::uint64_t was = std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at)).load();
  const std::uint64_t other = bits(input);
  for (int i = 0; i < kMost && !over(); ++i) store(at, i % 2 == 0 ? other : was);
}

/// Writes some words at the start or the end of a tail.
inline void write_tail(Input& input, const shim::Region& region, const shim::AStack& astack) {
  if (astack.tail == nullptr) return;
  const std::size_t room = region.layout().classes()[astack.astack_class].tail_stride;
  const std::uint8_t where = input.byte();
  const std::size_t at = where < 0xc0 ? std::size_t{where} * 8 : room - (0x100U - where) * 8;
  if (at + 8 <= room) store(astack.tail + at, bits(input));
}

inline void write_hints(Input& input, const shim::AStack& astack) {
  const std::uint8_t how = input.byte();
  astack.head->polled.store(how & 3U, std::memory_order_relaxed);
  astack.head->attached.store(how >> 2 & 3U, std::memory_order_relaxed);
}

/// Removes pages of the region for both domains.
inline void punch_hole(Input& input, const shim::Region& region) {
  constexpr std::size_t kPage = 4096;
  const std::size_t pages = region.layout().size() / kPage;
  const std::uint8_t where = input.byte();
  const std::size_t first = where < 0x80 ? 0 : std::size_t{input.two()} % pages;  // the first pages hold the call words
  const std::size_t count = std::min<std::size_t>(pages - first, 1 + where % 16);
  std::byte* const base = reinterpret_cast<std::byte*>(region.astack(0).head);
  (void)madvise(base + first * kPage, count * kPage, MADV_REMOVE);
}

}  // namespace lrpc::fuzz
