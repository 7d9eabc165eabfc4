// The threads that lrpc starts inside of somebody else's program.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// How the kernel is to schedule a thread (sched(7)).
struct Scheduling {
  enum class Policy : std::uint8_t { normal, batch, idle, fifo, round_robin };
  Policy policy = Policy::normal;
  int priority = 0;  ///< 1 to 99 with fifo and round_robin, else 0.
  int nice = 0;      ///< -20 to 19, for normal and batch.
};
/// Schedules the calling thread so. Errors: invalid_argument (no such priority), not_permitted (RLIMIT_RTPRIO,
/// RLIMIT_NICE).
Status schedule_this_thread(const Scheduling& scheduling);
/// Whether a thread of this process could be scheduled so, found out with a thread that ends at once. Blocks for that.
Status can_schedule(const Scheduling& scheduling);

/// One thread. What is sent to the process is blocked on it, so that no handler of the program interrupts it there; its
/// own faults reach their handlers. Nothing throws: a thread that cannot be had is an error of the caller's.
///
/// Not thread-safe. Precondition of its destruction: not running(); a fork child just forgets it.
class Thread {
 public:
  struct Options {
    const char* name = "lrpc";  ///< As debuggers and top show it; at most 15 characters.
    std::size_t stack_size =
        0;  ///< Bytes, rounded up to pages and to what a thread needs at least; 0: the system's default.
    std::size_t guard_size = 0;  ///< Bytes below the stack that nobody can touch, rounded up; 0: the system's default.
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
  /// True from start() to join() or detach().
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Whether it is the calling thread.
  [[nodiscard]] bool is_this() const noexcept { return running_ && pthread_equal(thread_, pthread_self()) != 0; }
  /// Waits until the body has returned, and what it made for its thread is destroyed. Nothing if not running().
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
