// A fence that costs nothing on the frequent side: the rare side pays for both (membarrier(2)).
#pragma once

#include <atomic>

#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::shim {

/// Whether this process is registered for MEMBARRIER_CMD_PRIVATE_EXPEDITED. If it is not (an old kernel, a filter),
/// light_fence() orders nothing: do not rely on it.
extern const bool have_asymmetric_fence;

/// The frequent side: orders its earlier stores before its later loads, as seen by a thread that calls heavy_fence().
/// Only restricts the compiler.
inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// The rare side: a full fence on this processor and, by an interrupt, on every other one that runs a thread of this
/// process. False if the kernel refused (a filter installed after the start, no memory): then the other threads were
/// not fenced.
[[nodiscard]] bool heavy_fence() noexcept;

// ---- The same between processes that share a region ----

/// Whether this process is registered for MEMBARRIER_CMD_GLOBAL_EXPEDITED, so that other processes'
/// heavy_shared_fence() reaches its threads.
extern const bool have_shared_fence;

/// The frequent side: orders its earlier stores before its later loads, as seen by a thread of any process that calls
/// heavy_shared_fence(). A full fence if the kernel cannot help.
inline void light_shared_fence() noexcept {
  if (have_shared_fence) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    full_fence();  // std::atomic_thread_fence() is more than ThreadSanitizer models, and compilers warn of that
  }
}

/// The rare side: a full fence on every processor that runs a thread of a registered process. False if the kernel
/// refuses (a filter, an old kernel). Then this waits a millisecond instead, far longer than a processor keeps a store
/// to itself; it sleeps, unless a filter refuses that, too. Tell the frequent side before it relies on the next fence
/// (PolledHint::without_fence()).
[[nodiscard]] bool heavy_shared_fence() noexcept;
/// Whether heavy_shared_fence() would return true now. One system call.
[[nodiscard]] bool can_fence_shared() noexcept;

}  // namespace lrpc::shim
