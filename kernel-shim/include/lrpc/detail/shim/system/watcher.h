// The watcher: one small thread per library that waits for events outside the call path: a peer's death, a bell, a
// socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "lrpc/detail/shim/result.h"

namespace lrpc::shim {

/// Watches descriptors for readability or hang-up and runs callbacks on its own thread.
///
/// The thread starts with the first watch, or with start(), blocks all signals, sleeps in epoll_wait without a timeout
/// (idle costs nothing) and does not survive fork: in a child, inert() is true, every watch is gone, and so is every
/// descriptor that was watched (drop_in_fork_children): the other end must not take the child for its peer. Of what has
/// happened by the time that it looks it reports ends before news, up to 1024 at once. Thread-safe.
///
/// Users take turns, with one event at a time: however many descriptors of one user have news, those of another user
/// wait for one callback of each user, and up to a millisecond until the thread looks; more looks if more than 1024 are
/// ready. Ends are reported out of turn.
class Watcher {
 public:
  using Id = std::uint64_t;
  /// `hung_up`: the other end is closed (for a pidfd: see `readable`). `id` is the watch's own, so that a callback can
  /// end its watch even before watch() has returned.
  struct Event {
    Id id = 0;
    bool readable = false;
    bool hung_up = false;
  };
  using Callback = std::function<void(Event)>;
  /// What is waited for: anything to read, or the end; or only that the other end of a socket is closed.
  enum class For : std::uint8_t { news, end };
  /// Whose turn it is. None: the watcher's own user, beside all others.
  using User = std::optional<uid_t>;

  explicit Watcher(const char* thread_name);  ///< At most 15 characters.
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();  ///< Stops and joins the thread; must not run on it.

  /// Starts the thread now, and not with the first watch: for whoever has to wait for others just then. Throws
  /// std::bad_alloc.
  Status start();
  /// Calls `callback` on the watcher's thread whenever `fd` is as wanted (level-triggered). Does not own
  /// `fd`, which must stay open until unwatch() has returned. The callback may throw std::bad_alloc and nothing else:
  /// it is called again after a pause, while `fd` is still so. Throws std::bad_alloc; then nothing is watched.
  Result<Id> watch(int fd, Callback callback, User user = {}, For what = For::news);
  /// No callback of `id` runs after it has returned, and none is running, unless called from within that very callback.
  /// 0 is no watch and does nothing.
  void unwatch(Id id);
  /// Work that can be posted again and again, from where nothing may fail: the memory that this takes is here from the
  /// beginning. It may throw std::bad_alloc and nothing else: it runs again after a pause. The task may go before its
  /// work has run, and after its watcher. Shared like a pointer; posted to one watcher only.
  class Task {
   public:
    Task() noexcept = default;  ///< None: to post it does nothing.
    explicit Task(std::function<void()> work);

   private:
    friend Watcher;
    struct Work;
    std::shared_ptr<Work> work_;
  };
  /// Runs its work once on the watcher's thread, after `delay_ms` milliseconds. If it has been posted and has not begun
  /// to run, it runs once, at the sooner of the two times. False: in a child of fork, or the thread could not be
  /// started.
  bool post(const Task& task, std::uint32_t delay_ms = 0) noexcept;
  [[nodiscard]] bool on_watcher_thread() const noexcept;
  /// True in a child of fork, where the thread does not exist.
  [[nodiscard]] bool inert() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrpc::shim
