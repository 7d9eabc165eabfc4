#include "lrpc/detail/shim/system/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace lrpc::shim {
namespace {

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

/// Far longer than a store stays in its processor's store buffer.
constexpr std::uint64_t kStoreArrivesUs = 1000;

/// Sleeps for kStoreArrivesUs. If a filter refuses that, too, polls the ticks instead.
void let_stores_arrive() noexcept {
  const std::uint64_t until = this_moment().after(kStoreArrivesUs);
  timespec left{0, kStoreArrivesUs * 1000};
  while (nanosleep(&left, &left) != 0) {
    if (errno == EINTR) continue;
    while (ticks() < until) poll_delay();
    return;
  }
}

}  // namespace

// Registration is inherited across fork. Static initialisation: before any thread of ours can run.
const bool have_asymmetric_fence = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);

bool heavy_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return have_asymmetric_fence && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

const bool have_shared_fence = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);

bool can_fence_shared() noexcept { return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

bool heavy_shared_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (can_fence_shared()) return true;
  let_stores_arrive();
  return false;
}

}  // namespace lrpc::shim
