#include "lrpc/shim/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lrpc/shim/processor.h"

namespace lrpc::shim {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

}  // namespace

// Registration is inherited across fork. Static initialisation: before any thread of ours can run.
const bool have_asymmetric_fence = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

bool heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return have_asymmetric_fence && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

const bool have_shared_fence = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);

void heavy_shared_fence() noexcept {
  constexpr std::uint64_t kStoreBufferUs = 10;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return;
  const std::uint64_t began = ticks();
  while (ticks() - began < kStoreBufferUs * ticks_per_microsecond()) poll_delay();
}

}  // namespace lrpc::shim
