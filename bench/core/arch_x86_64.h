// What the benches need of an x86-64 processor: its cycle counter, fenced, and its spin hint.
#pragma once

#include <cstdint>

namespace lrpc::bench {

/// Reads the counter before a timed section: all earlier instructions have finished, no later one has begun.
inline std::uint64_t ticks_begin() noexcept {
  __builtin_ia32_lfence();
  const std::uint64_t ticks = __builtin_ia32_rdtsc();
  __builtin_ia32_lfence();
  return ticks;
}
/// Reads the counter after a timed section: all earlier instructions have been executed.
inline std::uint64_t ticks_end() noexcept {
  unsigned processor = 0;
  const std::uint64_t ticks = __builtin_ia32_rdtscp(&processor);
  __builtin_ia32_lfence();
  return ticks;
}
/// The body of a polling loop.
inline void relax() noexcept { __builtin_ia32_pause(); }

}  // namespace lrpc::bench
