// Counts what a test program takes from the heap. The source beside it replaces every unaligned operator new and
// delete of the program that it is linked into; so such a test is a program of its own.
#pragma once

#include <cstdint>

namespace lrpc::netrpc {

/// How often the program has called an operator new so far, in whatever form but the aligned ones. Any thread.
[[nodiscard]] std::uint64_t allocations_so_far() noexcept;

}  // namespace lrpc::netrpc
