// AddressSanitizer, as GCC 12 has it, does not know of forks: a child that comes to be while another thread allocates inherits
// locks of the allocator that nobody will open, and waits for ever. So a test's forks wait until nobody allocates, as they
// do for the C library's own allocator. The functions are in the sanitizer's static library, which has them for its check
// of leaks. (The lock of the quarantine has none; it is held rarely.)
#include <pthread.h>

namespace __lsan {
void LockAllocator();
void UnlockAllocator();
}  // namespace __lsan
namespace __sanitizer {
void StackDepotLockAll();
void StackDepotUnlockAll();
}  // namespace __sanitizer

namespace {

void lock() {
  __lsan::LockAllocator();
  __sanitizer::StackDepotLockAll();
}
void unlock() {
  __sanitizer::StackDepotUnlockAll();
  __lsan::UnlockAllocator();
}

/// Before other handlers are registered: so this one is the last before the fork, and the first behind it.
[[gnu::constructor(101)]] void guard_forks() { pthread_atfork(&lock, &unlock, &unlock); }

}  // namespace
