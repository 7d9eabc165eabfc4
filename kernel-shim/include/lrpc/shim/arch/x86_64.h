// x86-64: see processor.h.
#pragma once

#include <x86intrin.h>

#include <cstdint>

namespace lrpc::shim {

inline void pause() noexcept { _mm_pause(); }
/// The time stamp counter, unserialised: good for bounds, not for timing single instructions.
[[nodiscard]] inline std::uint64_t ticks() noexcept { return __rdtsc(); }

}  // namespace lrpc::shim
