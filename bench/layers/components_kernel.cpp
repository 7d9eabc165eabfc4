// What the network path needs of the kernel: the crossings, switches and dispatching of Table I.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "components.h"
#include "core/store.h"
#include "floors/floors.h"
#include "floors/naive.h"
#include "lrpc/netrpc/monitor.h"
#include "thread_pair.h"

namespace lrpc::bench {
namespace {

/// A signal with an empty handler: the kernel calls a procedure of the user's.
class EmptySignal {
 public:
  EmptySignal() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    ::sigaction(kSignal, &nothing, &before_);
  }
  EmptySignal(const EmptySignal&) = delete;
  EmptySignal& operator=(const EmptySignal&) = delete;
  ~EmptySignal() { ::sigaction(kSignal, &before_, nullptr); }
  [[nodiscard]] bool raise() const noexcept { return ::syscall(SYS_tgkill, process_, thread_, kSignal) == 0; }

 private:
  static constexpr int kSignal = SIGUSR2;
  const long process_ = ::syscall(SYS_getpid);
  const long thread_ = ::syscall(SYS_gettid);
  struct sigaction before_ {};
};

class KernelComponents final : public Components {
 public:
  Status start(const Seats& seats) {
    // Processes first, because a process that forks must have one thread.
    if (Status made = store(yield_, make_yield_floor(seats)); !made) return made;
    if (Status made = store(futex_, make_naive_futex(seats)); !made) return made;
    threads_.emplace();
    shepherd_.emplace([this] { const netrpc::Shepherd inside(monitor_); });

    add_each("null system call", "enter and leave the kernel: a null system call", 20, 100,
             [] { return ::syscall(SYS_getppid) >= 0; });
    add_each("signal", "enter and leave user code from the kernel: a signal's empty handler", 254, 10,
             [this] { return signal_.raise(); });
    add("switch by yield", "context switch between two processes, by sched_yield", 38, 2, *yield_);
    add("handoff to thread", "context switch between two threads, by futex", 38, 2, [this] {
      threads_->round_trip();
      return true;
    });
    add("handoff to process", "context switch between two processes, by futex", 38, 2, *futex_);
    add("exchange between processes", "two processes exchange two messages, by futex: all crossings", 548, 1, *futex_);
    add_each("shepherd", "dispatch a shepherd: none, the thread that waits enters the monitor", 135, 100, [this] {
      const netrpc::Shepherd inside(monitor_);
      return true;
    });
    add("shepherd woken", "dispatch a shepherd: a service thread woken, enters, hands back", 135, 1, [this] {
      shepherd_->round_trip();
      return true;
    });
    add_each("copy 1024", "copy 1,024 bytes", 250, 100, [this] {
      std::memcpy(to_.data(), from_.data(), to_.size());
      asm volatile("" : : "r"(to_.data()), "r"(from_.data()) : "memory");
      return true;
    });
    return {};
  }

 private:
  std::unique_ptr<Contender> yield_;
  std::unique_ptr<Contender> futex_;
  netrpc::Monitor monitor_;
  std::optional<ThreadPair> threads_;
  std::optional<ThreadPair> shepherd_;
  EmptySignal signal_;
  alignas(64) std::array<std::byte, 1024> from_{};
  alignas(64) std::array<std::byte, 1024> to_{};
};

}  // namespace

Result<std::unique_ptr<Components>> kernel_components(const Seats& seats) {
  auto made = std::make_unique<KernelComponents>();
  if (const Status started = made->start(seats); !started) return started.error();
  return std::unique_ptr<Components>(std::move(made));
}

}  // namespace lrpc::bench
