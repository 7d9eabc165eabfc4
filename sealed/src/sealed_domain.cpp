#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "launcher.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "lrpc/detail/shim/system/fork.h"
#include "lrpc/detail/shim/system/thread.h"
#include "lrpc/sealed.h"

namespace lrpc {

/// One thread forks, supervises and reaps, because ptrace(2) ties a tracer to a thread.
struct SealedDomain::Impl {
  Impl(std::vector<std::string> arguments, SealedOptions options)
      : launcher(std::move(arguments), std::move(options)) {}

  void run() noexcept {
    std::optional<Status> status;
    std::exception_ptr thrown;
    try {
      status = launcher.start();
    } catch (...) {
      thrown = std::current_exception();
    }
    const bool runs = status && *status;
    {
      std::lock_guard lock(mutex);
      started = std::move(status);
      without_memory = thrown;
      pidfd = launcher.take_pidfd();
      changed.notify_all();
    }
    if (!runs) return;
    const int how = launcher.supervisor().wait_for_end();
    std::lock_guard lock(mutex);
    ended = how;
    changed.notify_all();
  }

  /// Whether this is a fork child: it does not have the thread, and the program belongs to the parent.
  [[nodiscard]] bool inert() const noexcept { return owner != shim::this_process(); }

  const shim::ProcessNumber owner = shim::this_process();
  sealed::Launcher launcher;
  shim::Thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  // One of these two is set when the start has succeeded or failed.
  std::optional<Status> started;
  std::exception_ptr without_memory;  ///< What the start threw; start() rethrows it.
  std::optional<int> ended;
  UniqueFd pidfd;
};

Result<SealedDomain> SealedDomain::start(std::vector<std::string> arguments, SealedOptions options) {
  const shim::NoCancellation never;
  auto impl = std::make_unique<Impl>(std::move(arguments), std::move(options));
  if (Status prepared = impl->launcher.prepare(); !prepared) return prepared.error();
  Impl& made = *impl;
  if (Status running = made.thread.start<&Impl::run>({.name = "lrpc-sealed"}, &made); !running) return running.error();
  SealedDomain domain(std::move(impl));
  {
    std::unique_lock lock(made.mutex);
    made.changed.wait(lock, [&] { return made.started || made.without_memory; });
  }
  // The thread does not touch these two any more.
  if (made.without_memory) std::rethrow_exception(made.without_memory);
  if (!*made.started) return made.started->error();
  return domain;
}

SealedDomain::SealedDomain(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SealedDomain::SealedDomain(SealedDomain&&) noexcept = default;
SealedDomain& SealedDomain::operator=(SealedDomain&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

SealedDomain::~SealedDomain() {
  if (impl_ == nullptr) return;
  if (impl_->inert()) {
    (void)impl_.release();
    return;
  }
  signal(SIGKILL);
  impl_->thread.join();
}

pid_t SealedDomain::pid() const noexcept { return impl_->launcher.pid(); }

void SealedDomain::signal(int number) noexcept {
  // By pidfd: the supervisor may reap the program at any time, and its pid may be reused.
  if (impl_->pidfd) (void)syscall(SYS_pidfd_send_signal, impl_->pidfd.get(), number, nullptr, 0U);
}

int SealedDomain::wait() noexcept {
  if (impl_->inert()) return -1;
  const shim::NoCancellation never;
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return impl_->ended.has_value(); });
  return *impl_->ended;
}

}  // namespace lrpc
