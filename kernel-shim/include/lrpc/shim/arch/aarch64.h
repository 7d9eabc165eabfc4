// aarch64: see processor.h.
#pragma once

#include <cstdint>

namespace lrpc::shim {

inline void poll_delay() noexcept { asm volatile("isb" ::: "memory"); }
/// The virtual counter, unserialised: good for bounds, not for timing single instructions.
[[nodiscard]] inline std::uint64_t ticks() noexcept {
  std::uint64_t value = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
}

}  // namespace lrpc::shim
