// Allocations that fail, in another process: what a test and the library that is preloaded there share.
#pragma once

#include <atomic>
#include <cstdint>

namespace testing_lrpc {

/// Lies in a file that both map; the test names it in $LRPC_ALLOCATION_FAULTS. All zero: nothing fails.
struct AllocationFaults {
  std::atomic<std::uint64_t> count;   ///< Allocations, by all threads.
  std::atomic<std::uint64_t> first;   ///< The first of them that fails; 0: none does.
  std::atomic<std::uint64_t> last;    ///< The last one.
  std::atomic<std::uint64_t> failed;  ///< That have failed.
  std::atomic<std::int64_t> live;     ///< Allocated and not freed.
  char thread[16];  ///< Of threads of this name alone are allocations counted as such and fail; empty: of all.
  // Of a process that lives by itself.
  std::atomic<std::uint64_t> lives;  ///< That it has had.
  std::atomic<std::uint64_t> good;   ///< Of them: in which everything succeeded.
};

}  // namespace testing_lrpc
