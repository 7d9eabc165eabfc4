// The watcher: a thread of the library that waits for events outside the call path: a peer's death, a bell, a socket.
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
/// The thread starts with the first watch, or with start(). It blocks all signals and sleeps in epoll_wait without a
/// timeout, so idle costs nothing. It does not survive fork: in a child inert() is true, and all watches are gone with
/// their descriptors (drop_in_fork_children), because the other end must not take the child for its peer. One look
/// takes up to 1024 events, and reports ends before news. Thread-safe.
///
/// Users take turns, with one event at a time. However many descriptors of one user have news, those of another user
/// wait for at most one callback of each user, and for up to a millisecond until the thread looks (for more looks if
/// more than 1024 are ready). Ends are reported out of turn.
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
  /// What to wait for. `news`: anything to read, or the end, which is told out of turn. `messages`: the same, but the
  /// end waits for its turn, too: unread messages come with it. `end`: only that the other end of a socket is closed.
  enum class For : std::uint8_t { news, messages, end };
  /// For whom something is watched, by turns. None: the process itself, as one more user.
  using User = std::optional<uid_t>;

  explicit Watcher(const char* thread_name);  ///< At most 15 characters.
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();  ///< Stops and joins the thread; must not run on it.

  /// Starts the thread now, not with the first watch: for a caller that is about to wait for a peer anyway. Throws
  /// std::bad_alloc.
  Status start();
  /// Calls `callback` on the watcher's thread while `fd` is in the state of `what` (level-triggered). Does not own
  /// `fd`, which must stay open until unwatch() has returned. The callback may throw std::bad_alloc and nothing else;
  /// then it is called again after a pause, while `fd` is still in that state. Throws std::bad_alloc; then nothing is
  /// watched.
  Result<Id> watch(int fd, Callback callback, User user = {}, For what = For::news);
  /// When this has returned, no callback of `id` runs any more, except the one from which this was called. 0 is no
  /// watch: does nothing.
  void unwatch(Id id);
  /// Work that can be posted again and again, even where nothing may fail: the memory for that is allocated at the
  /// beginning. The work may throw std::bad_alloc and nothing else; then it runs again after a pause. The task may be
  /// destroyed before its work has run, and after its watcher. Copies share the work. Post it to one watcher only.
  class Task {
   public:
    Task() noexcept = default;  ///< No work: post() does nothing.
    explicit Task(std::function<void()> work);

   private:
    friend Watcher;
    struct Work;
    std::shared_ptr<Work> work_;
  };
  /// Runs the task's work once on the watcher's thread, after `delay_ms` milliseconds. If the task was posted before
  /// and has not begun to run, it runs once, at the earlier time. False: this is a forked child, or the thread could
  /// not be started.
  bool post(const Task& task, std::uint32_t delay_ms = 0) noexcept;
  [[nodiscard]] bool on_watcher_thread() const noexcept;
  /// True in a forked child, where the thread does not exist.
  [[nodiscard]] bool inert() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lrpc::shim
