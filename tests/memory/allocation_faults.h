// Allocations that fail in another process: the memory that a test shares with the library preloaded there.
#pragma once

#include <atomic>
#include <cstdint>

namespace testing_lrpc {

/// In a file that both map. The test names the file in $LRPC_ALLOCATION_FAULTS. All zero: no allocation fails.
struct AllocationFaults {
  std::atomic<std::uint64_t> count;   ///< Allocations so far, by all threads.
  std::atomic<std::uint64_t> first;   ///< The first allocation that fails, by number; 0: none.
  std::atomic<std::uint64_t> last;    ///< The last allocation that fails.
  std::atomic<std::uint64_t> failed;  ///< Allocations that have failed.
  std::atomic<std::int64_t> live;     ///< Allocated and not freed.
  char thread[16];                    ///< If not empty, only allocations of threads with this name count and fail.
  // For a process that repeats its work by itself (its lives).
  std::atomic<std::uint64_t> wanted;  ///< Lives that the test wants by now; only restless_client.cpp waits for them.
  std::atomic<std::uint64_t> lives;   ///< Lives so far.
  std::atomic<std::uint64_t> good;    ///< Lives in which everything succeeded.
};

}  // namespace testing_lrpc
