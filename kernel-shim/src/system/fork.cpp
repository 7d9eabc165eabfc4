#include "lrpc/detail/shim/system/fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>
#include <set>

namespace lrpc::shim {
namespace {

struct Dropped {
  std::mutex mutex;
  std::multiset<int> fds;
  std::multiset<int> of_parent;  ///< In a child: numbers that have been replaced. The fork handler may not free them.
};

/// Never destroyed: watchers in static storage may outlive any static.
Dropped& dropped() {
  static Dropped& all = *new Dropped;  // NOLINT: leaked on purpose, see above
  return all;
}

int unconnected() noexcept { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

/// Replaces each by an unconnected socket. To close is not enough: the number's owner in the child may close or use it.
void replace_all(const std::multiset<int>& fds) noexcept {
  if (fds.empty()) return;
  int nobody = unconnected();
  const bool spare = nobody >= 0;
  for (const int fd : fds) {
    if (::fcntl(fd, F_GETFD) < 0) continue;
    if (nobody >= 0) {
      (void)::dup3(nobody, fd, O_CLOEXEC);
      continue;
    }
    ::close(fd);  // out of descriptors: now there is one
    nobody = unconnected();
    if (nobody < 0 || nobody == fd) continue;
    (void)::dup3(nobody, fd, O_CLOEXEC);
    ::close(nobody);
    nobody = fd;
  }
  if (spare) ::close(nobody);
}

void before_fork() { dropped().mutex.lock(); }
void after_fork_in_parent() { dropped().mutex.unlock(); }
/// Nothing is allocated or freed: an allocator that does not know of forks may be locked by a thread that is not here.
void after_fork_in_child() {
  replace_all(dropped().fds);
  dropped().of_parent.merge(dropped().fds);
  dropped().mutex.unlock();
}

using KnownProcess = std::atomic<ProcessNumber>;  ///< 0: not known.

/// Null: the kernel cannot do it; then the pid is used.
KnownProcess* make_known_process() noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (madvise(memory, page, MADV_WIPEONFORK) == 0) return new (memory) KnownProcess(0);
  munmap(memory, page);
  return nullptr;
}

/// Made by the first call, which may come from a program's own static initialisation; at the latest in this file's, so
/// that it precedes a sandbox.
KnownProcess* known_process() noexcept {
  static KnownProcess* const made = make_known_process();
  return made;
}
[[maybe_unused]] KnownProcess* const made_early = known_process();

/// The last number given to this process or an ancestor. A child inherits it.
constinit std::atomic<ProcessNumber> last_number{0};

/// Before there are threads: a child forked while a thread registers the handlers would wait for that thread for ever.
[[maybe_unused]] const bool known_early = (know_of_forks(), true);

}  // namespace

ProcessNumber this_process() noexcept {
  KnownProcess* const here = known_process();
  if (here == nullptr) return static_cast<ProcessNumber>(::getpid());
  ProcessNumber known = here->load(std::memory_order_relaxed);
  if (known != 0) return known;
  // Count before use: a child forked in between gets another number.
  const ProcessNumber number = last_number.fetch_add(1) + 1;
  return here->compare_exchange_strong(known, number) ? number : known;
}

void know_of_forks() {
  [[maybe_unused]] static const int registered =
      ((void)dropped(), pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child));
}

void drop_in_fork_children(int fd) {
  know_of_forks();
  const std::lock_guard lock(dropped().mutex);
  dropped().of_parent.clear();
  dropped().fds.insert(fd);
}

void keep_in_fork_children(int fd) noexcept {
  const std::lock_guard lock(dropped().mutex);
  if (const auto found = dropped().fds.find(fd); found != dropped().fds.end()) dropped().fds.erase(found);
}

}  // namespace lrpc::shim
