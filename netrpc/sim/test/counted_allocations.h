// Counts a test program's heap allocations, and can deny a thread further memory. The source beside it replaces
// malloc(3) and every unaligned operator new and delete of the whole program; so such a test is a program of its own.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// How many times the program has called an unaligned operator new so far. Any thread.
[[nodiscard]] std::uint64_t allocations_so_far() noexcept;
/// True: each unaligned operator new of the calling thread throws std::bad_alloc from now on. False: it has memory
/// again.
void deny_memory(bool denied) noexcept;
/// The same for malloc(3), from which buffers, items and timers come.
void deny_malloc(bool denied) noexcept;

}  // namespace lrpc::netrpc
