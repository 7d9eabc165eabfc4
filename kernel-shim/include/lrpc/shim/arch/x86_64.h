// x86-64: see processor.h.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace lrpc::shim {

/// The time between two looks at a polled word: keeps loads of the next look from being speculated, and so the pipeline
/// from being flushed when the word changes. docs/PERFORMANCE.md has what else was tried.
inline void poll_delay() noexcept { _mm_pause(); }
/// The time stamp counter, unserialised: good for bounds, not for timing single instructions.
[[nodiscard]] inline std::uint64_t ticks() noexcept { return __rdtsc(); }

}  // namespace lrpc::shim
