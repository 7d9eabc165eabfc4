#include "lrpc/detail/client/binding/revocation.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::client {
namespace {

int make_event(bool readable) noexcept { return ::eventfd(readable ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK); }

}  // namespace

RevocationNews::~RevocationNews() { UniqueFd(fd_.load()).reset(); }

Result<int> RevocationNews::descriptor(const std::atomic<bool>& revoked) {
  if (const int made = fd_.load(std::memory_order_acquire); made >= 0) return made;
  // Without the mutex: in a forked child a thread that does not exist there may hold it.
  UniqueFd fd(make_event(false));
  if (!fd) return system_error("eventfd", errno);
  int before = -1;
  if (!fd_.compare_exchange_strong(before, fd.get(), std::memory_order_seq_cst)) return before;
  // A thread that sets the flag looks for a descriptor afterwards: either it sees ours, or we see the flag.
  if (revoked.load(std::memory_order_seq_cst)) signal();
  return fd.release();
}

void RevocationNews::signal() noexcept {
  const int fd = fd_.load(std::memory_order_seq_cst);
  if (fd >= 0) (void)::eventfd_write(fd, 1);
}

void RevocationNews::call(std::function<void()> told) {
  {
    const std::lock_guard lock(mutex_);
    if (!told_) {
      to_call_.push_back(std::move(told));
      return;
    }
  }
  shim::EscapedExceptions escaped;
  tell(told, escaped);
}

void RevocationNews::tell() noexcept {
  shim::EscapedExceptions escaped;
  for (;;) {
    decltype(to_call_) now;
    {
      const std::lock_guard lock(mutex_);
      now.swap(to_call_);
      told_ = now.empty();
    }
    if (now.empty()) return;
    for (const auto& told : now) tell(told, escaped);
  }
}

/// An exception must end neither the watcher's thread nor what the program does.
void RevocationNews::tell(const std::function<void()>& told, shim::EscapedExceptions& escaped) noexcept {
  try {
    told();
  } catch (...) {
    escaped.print({"on_revoked or when_revoked()"}, "this binding");
  }
}

void RevocationNews::forget_after_fork() noexcept {
  const int fd = fd_.load(std::memory_order_relaxed);
  if (fd < 0) return;
  ::close(fd);  // first, so that eventfd() finds a free descriptor
  const int own = make_event(true);
  if (own < 0 || own == fd) return;
  (void)::dup3(own, fd, O_CLOEXEC);
  ::close(own);
}

}  // namespace lrpc::client
