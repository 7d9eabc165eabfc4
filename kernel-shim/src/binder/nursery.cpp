#include "nursery.h"

#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/handover.h"
#include "lrpc/detail/shim/system/lack.h"
#include "lrpc/detail/shim/system/pidfd.h"

namespace lrpc::shim {
namespace {

constexpr std::size_t kStack = 256 * 1024;
/// How long the first request for a thread apart waits for the nursery, which may have to flush the program's files. It
/// is not started earlier: until the files are flushed it holds copies of the program's other descriptors, and so
/// delays their last close. Only a program to which a stranger sends something needs a nursery.
constexpr std::chrono::milliseconds kNurseryTime{200};

/// Whether a thread apart can copy descriptors from the process's table, or only lacks something for that now.
bool can_fetch() noexcept {
  if (has_thread_sanitizer()) return false;  // it confuses the numbers of different tables
  const UniqueFd self = pidfd_of(::getpid());
  if (!self) return is_lack(errno);
  const UniqueFd copy = copy_from(self, self.get());
  return copy || is_lack(errno);
}

/// Gives the calling thread an empty table: 0 or an errno.
int empty_table() noexcept {
  if (!can_fetch()) return ENOSYS;
  return ::syscall(SYS_close_range, 0U, ~0U, CLOSE_RANGE_UNSHARE) == 0 ? 0 : errno;
}

}  // namespace

bool start_detached(const char* name, Thread::Body body, void* argument) noexcept {
  Thread thread;
  if (!thread.start({.name = name, .stack_size = kStack}, body, argument)) return false;
  thread.detach();
  return true;
}

bool Nursery::start(Thread::Body body, void* argument) {
  const std::lock_guard turn(one_at_a_time_);
  std::unique_lock lock(mutex_);
  if (state_ == State::none) {
    const auto main = [](void* nursery) -> void* { return static_cast<Nursery*>(nursery)->run(), nullptr; };
    if (!start_detached("lrpc-nursery", main, this)) return false;
    state_ = State::coming;
  }
  // Wait only once: flushing a file of the program may hold the nursery up for ever.
  if (state_ == State::coming && !std::exchange(waited_, true)) {
    changed_.wait_for(lock, kNurseryTime, [this] { return state_ != State::coming; });
  }
  if (state_ != State::ready) return false;
  argument_ = argument;
  body_ = body;
  changed_.notify_all();
  changed_.wait(lock, [this] { return body_ == nullptr; });
  return started_;
}

void Nursery::run() {
  const int err = empty_table();
  std::unique_lock lock(mutex_);
  state_ = err == 0 ? State::ready : is_lack(err) ? State::none : State::refused;
  changed_.notify_all();
  if (err != 0) return;
  for (;;) {
    changed_.wait(lock, [this] { return body_ != nullptr; });
    started_ = start_detached("lrpc-porter", body_, argument_);
    body_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace lrpc::shim
