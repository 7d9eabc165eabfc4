// Counts what a test program takes from the heap, and lets a thread have nothing of it. The source beside it replaces
// every unaligned operator new and delete of the program that it is linked into; so such a test is a program of its
// own.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// How often the program has called an operator new so far, in whatever form but the aligned ones. Any thread.
[[nodiscard]] std::uint64_t allocations_so_far() noexcept;
/// From now on there is no memory for the calling thread: each of those throws std::bad_alloc. False: there is again.
void deny_memory(bool denied) noexcept;

}  // namespace lrpc::netrpc
