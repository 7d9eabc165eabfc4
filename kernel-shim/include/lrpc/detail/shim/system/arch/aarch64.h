// aarch64: see processor.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lrpc::shim {

inline void poll_delay() noexcept { asm volatile("isb" ::: "memory"); }
/// Orders everything before it before everything after it, on all processors.
inline void full_fence() noexcept { asm volatile("dmb ish" : : : "memory"); }
/// The virtual counter, unserialised: good for bounds, not for timing single instructions.
[[nodiscard]] inline std::uint64_t ticks() noexcept {
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}

/// 16 bits at a place that is given from the thread pointer, loaded afresh each time.
template <std::ptrdiff_t kMember>
[[nodiscard]] inline std::uint16_t load_from_thread(std::ptrdiff_t offset) noexcept {
  return *reinterpret_cast<const volatile std::uint16_t*>(static_cast<const char*>(__builtin_thread_pointer()) +
                                                          offset + kMember);
}

}  // namespace lrpc::shim
