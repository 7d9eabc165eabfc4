// The threads that lrpc starts inside a user's program.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// How the kernel schedules a thread (sched(7)).
struct Scheduling {
  enum class Policy : std::uint8_t { normal, batch, idle, fifo, round_robin };
  Policy policy = Policy::normal;
  int priority = 0;  ///< 1 to 99 with fifo and round_robin, otherwise 0.
  int nice = 0;      ///< -20 to 19 with normal and batch, otherwise 0.
};
/// Schedules the calling thread like that. Errors: invalid_argument (no such priority or niceness), not_permitted
/// (RLIMIT_RTPRIO, RLIMIT_NICE).
Status schedule_this_thread(const Scheduling& scheduling);
/// Whether a thread of this process can be scheduled like that. Tries it with a new thread, and waits until that has
/// ended.
Status can_schedule(const Scheduling& scheduling);
/// Whether threads with this policy run before all ordinary ones, so that sched_yield(2) lets none of these run.
/// `policy` is as sched_getscheduler(2) returns it.
[[nodiscard]] bool is_realtime(int policy) noexcept;

/// One thread. It blocks signals to the process, so that no handler of the program interrupts it; its own faults reach
/// their handlers. The program's code that it runs cannot cancel it. Nothing throws: start() returns an error if there
/// can be no thread.
///
/// Not thread-safe. Precondition of its destruction: not running(). A forked child needs no join().
class Thread {
 public:
  struct Options {
    const char* name = "lrpc";   ///< As debuggers and top show it; at most 15 characters.
    std::size_t stack_size = 0;  ///< Bytes beside thread-local variables, at least what a thread needs; 0: the default.
    std::size_t guard_size = 0;  ///< Bytes below the stack that nobody can touch; 0: the default. Both are rounded up.
  };
  using Body = void* (*)(void* argument);

  Thread() noexcept = default;
  /// `other` is then not running().
  Thread(Thread&& other) noexcept : thread_(other.thread_), running_(std::exchange(other.running_, false)) {}
  /// Precondition: not running().
  Thread& operator=(Thread&& other) noexcept {
    thread_ = other.thread_;
    running_ = std::exchange(other.running_, false);
    return *this;
  }

  /// Runs `body(argument)`; what it returns is dropped. Precondition: not running().
  Status start(const Options& options, Body body, void* argument);
  /// Runs `(of->*kRun)()`: the member function kRun. Precondition: not running().
  template <auto kRun, class Of>
  Status start(const Options& options, Of* of) {
    return start(
        options, [](void* argument) -> void* { return (static_cast<Of*>(argument)->*kRun)(), nullptr; }, of);
  }
  /// True from start() to join() or detach().
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Whether it is the calling thread.
  [[nodiscard]] bool is_this() const noexcept { return running_ && pthread_equal(thread_, pthread_self()) != 0; }
  /// Waits until the body has returned and its thread's own objects are destroyed. Does nothing if not running().
  void join() noexcept;
  /// Lets the thread end by itself.
  void detach() noexcept;

 private:
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace lrpc::shim

namespace lrpc {
using shim::Scheduling;
}  // namespace lrpc
