// Retries for close_aside() (peer_socket.h), when it got no thread, or no memory for one.
#pragma once

#include <chrono>

#include "lrpc/detail/shim/system/watcher.h"

namespace lrpc::shim {

/// The pause between two attempts.
inline constexpr std::chrono::milliseconds kClosingPause{100};

/// Tries again, if it is time. True: something waits, or may soon wait, for a thread or for memory: call this again
/// after kClosingPause. For processes with a loop of their own instead of a watcher. Does not wait. Thread-safe.
[[nodiscard]] bool close_aside_again() noexcept;

/// While this lives, `watcher` tries again as long as needed, and is not woken otherwise. A process without a watcher
/// and without a loop tries again when it closes the next descriptor aside. Prepares what close_aside() needs. Destroy
/// it before its watcher. The watcher's thread should already run: the reason to try again may be that no thread can be
/// started.
class ClosingAgain {
 public:
  explicit ClosingAgain(Watcher& watcher);  ///< Throws std::bad_alloc.
  ClosingAgain(const ClosingAgain&) = delete;
  ClosingAgain& operator=(const ClosingAgain&) = delete;
  ~ClosingAgain();

  /// Schedules the next attempt, after the pause. False: the watcher cannot.
  [[nodiscard]] bool soon() const noexcept;

 private:
  Watcher& watcher_;
  const Watcher::Task again_{[] { (void)close_aside_again(); }};
};

}  // namespace lrpc::shim
