// AddressSanitizer, as GCC 12 has it, does not know of forks: a child that comes to be while another thread allocates
// inherits locks of the allocator that nobody will open, and waits for ever; so it is with the list of threads, where
// another thread begins or ends. A test's forks wait until nobody does, as they do for the C library's own allocator.
// The functions are in the sanitizer's static library, which has them for its check of leaks, and takes the locks in
// this order. (The lock of the quarantine has none; it is held rarely. A child that is made before its parent has
// threads needs none of this.)
#include <pthread.h>

namespace __lsan {
void LockThreadRegistry();
void UnlockThreadRegistry();
void LockAllocator();
void UnlockAllocator();
}  // namespace __lsan
namespace __sanitizer {
void StackDepotLockAll();
void StackDepotUnlockAll();
}  // namespace __sanitizer

namespace {

void lock() {
  __lsan::LockThreadRegistry();
  __lsan::LockAllocator();
  __sanitizer::StackDepotLockAll();
}
void unlock() {
  __sanitizer::StackDepotUnlockAll();
  __lsan::UnlockAllocator();
  __lsan::UnlockThreadRegistry();
}

/// Before other handlers are registered: so this one is the last before the fork, and the first behind it.
[[gnu::constructor(101)]] void guard_forks() { pthread_atfork(&lock, &unlock, &unlock); }

}  // namespace
