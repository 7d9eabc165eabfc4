#include "library.h"

#include <pthread.h>

#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::client {
namespace {

std::mutex library_mutex;
Library* library_now = nullptr;

void before_fork() {
  library_mutex.lock();
  if (library_now != nullptr) library_now->mutex.lock();
}

void after_fork_in_parent() {
  if (library_now != nullptr) library_now->mutex.unlock();
  library_mutex.unlock();
}

/// A forked child does not hold bindings: each is revoked before anybody can touch its memory. The child may make new
/// ones, with a watcher of its own. The parent's Library is leaked: its watcher's thread does not exist here.
void after_fork_in_child() {
  if (library_now != nullptr) {
    for (BindingObject* binding : library_now->bindings) binding->forget_after_fork();
    library_now->mutex.unlock();
    library_now = nullptr;
  }
  forget_other_threads_numbers();
  library_mutex.unlock();
}

/// Registers the fork handlers before there are threads: without them, a child forked while a thread holds the lock
/// would find it locked. A program's own static initialisation may come before this file's; then its first import
/// registers them.
void tell_of_forks() {
  // After those of fork.h, as it demands: ours close descriptors that those replace.
  static const int registered =
      (shim::know_of_forks(), pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child));
  (void)registered;
}
[[maybe_unused]] const bool told_early = (tell_of_forks(), true);

}  // namespace

Library& Library::get() {
  tell_of_forks();
  std::lock_guard lock(library_mutex);
  if (library_now == nullptr) library_now = new Library;  // NOLINT: leaked on purpose, see above
  return *library_now;
}

Library& Library::of_living_binding() { return *library_now; }

}  // namespace lrpc::client
