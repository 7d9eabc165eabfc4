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

/// A fork child does not hold bindings: each is revoked before anybody can touch its memory. New ones may be
/// made, with a watcher of the child's own; the parent's, whose thread is not here, is left behind.
void after_fork_in_child() {
  if (library_now != nullptr) {
    for (BindingObject* binding : library_now->bindings) binding->forget_after_fork();
    library_now->mutex.unlock();
    library_now = nullptr;
  }
  forget_other_threads_numbers();
  library_mutex.unlock();
}

/// Before there are threads: a child that is made while one of them has the lock must not have it locked. By the first
/// import of a program's own static initialisation, if that comes before this file's.
void tell_of_forks() {
  // After the watcher's own: ours close what that has replaced.
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
