// x86-64: see processor.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lrpc::shim {

/// The time between two looks at a polled word: keeps loads of the next look from being speculated, and so the pipeline
/// from being flushed when the word changes. docs/PERFORMANCE.md has what else was tried.
inline void poll_delay() noexcept { __builtin_ia32_pause(); }
/// Orders everything before it before everything after it, on all processors.
inline void full_fence() noexcept { asm volatile("lock; orl $0, (%%rsp)" : : : "memory", "cc"); }
/// The time stamp counter, unserialised: good for bounds, not for timing single instructions.
[[nodiscard]] inline std::uint64_t ticks() noexcept { return __builtin_ia32_rdtsc(); }

/// 16 bits at a place that is given from the thread pointer, loaded afresh each time.
template <std::ptrdiff_t kMember>
[[nodiscard]] inline std::uint16_t load_from_thread(std::ptrdiff_t offset) noexcept {
  std::uint32_t value = 0;
  asm volatile("movzwl %%fs:%c2(%1), %0" : "=r"(value) : "r"(offset), "i"(kMember));
  return static_cast<std::uint16_t>(value);
}

}  // namespace lrpc::shim
