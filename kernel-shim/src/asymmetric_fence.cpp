#include "lrpc/shim/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

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

bool heavy_shared_fence() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) return true;
  timespec left{0, 1'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
  return false;
}

}  // namespace lrpc::shim
