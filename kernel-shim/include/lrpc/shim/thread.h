// The threads that lrpc starts inside of somebody else's program.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "lrpc/shim/result.h"

namespace lrpc::shim {

/// One thread. All signals are blocked on it, so that no signal handler of the program ever runs there. Nothing throws: a
/// thread that cannot be had is an error for the caller to deal with.
///
/// Not thread-safe. Precondition of its destruction: not running(); a fork child just forgets it.
class Thread {
 public:
  struct Options {
    const char* name = "lrpc";   ///< As debuggers and top show it; at most 15 characters.
    std::size_t stack_size = 0;  ///< Bytes, rounded up to pages and to what a thread needs at least; 0: the system's default.
    std::size_t guard_size = 0;  ///< Bytes below the stack that nobody can touch, rounded up; 0: the system's default.
  };
  using Body = void* (*)(void* argument);

  Thread() noexcept = default;
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Runs `body(argument)`; what it returns is dropped. Precondition: not running().
  Status start(const Options& options, Body body, void* argument);
  /// True from start() to join() or detach().
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Waits until the body has returned.
  void join() noexcept;
  /// Lets the thread end by itself.
  void detach() noexcept;

 private:
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace lrpc::shim
