// Who tries again where close_aside() (peer_socket.h) could have no thread, or no memory for one.
#pragma once

#include <chrono>

#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc::shim {

/// Between two attempts.
inline constexpr std::chrono::milliseconds kClosingPause{100};

/// Tries again, if it is time. True: something waits for want of a thread or of memory, or may soon do so: call it
/// again after kClosingPause.
/// For who has a loop of its own instead of a watcher. Does not wait. Thread-safe.
[[nodiscard]] bool close_aside_again() noexcept;

/// While it lives, `watcher` tries again as long as that is needed, and is not woken otherwise. A process without one
/// and without a loop tries again with the next descriptor that it closes aside. Makes what close_aside() needs, if it
/// is not there. Destroyed before its watcher, whose thread should run: what waits may do so because none can be had.
class ClosingAgain {
 public:
  explicit ClosingAgain(Watcher& watcher);  ///< Throws std::bad_alloc.
  ClosingAgain(const ClosingAgain&) = delete;
  ClosingAgain& operator=(const ClosingAgain&) = delete;
  ~ClosingAgain();

  /// The next attempt, after the pause. False: the watcher cannot.
  [[nodiscard]] bool soon() const noexcept;

 private:
  Watcher& watcher_;
  const Watcher::Task again_{[] { (void)close_aside_again(); }};
};

}  // namespace lrpc::shim
