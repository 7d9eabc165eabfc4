// AddressSanitizer, as in GCC 12, does not handle forks. If a child is forked while another thread allocates, the child
// inherits a locked allocator lock that nobody unlocks, and waits for ever. The same holds for the list of threads, if
// another thread starts or ends. So this file takes these locks around each fork of a test, as the C library does for
// its own allocator. The functions are in the sanitizer's static library. Its leak check uses them, and takes the locks
// in this order. (There is no function for the quarantine's lock, which is held rarely. A child that is forked before
// its parent has threads needs none of this.)
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

/// Registered before other handlers: so lock() runs last before the fork, and unlock() first after it.
[[gnu::constructor(101)]] void guard_forks() { pthread_atfork(&lock, &unlock, &unlock); }

}  // namespace
