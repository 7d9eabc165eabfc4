// Waiting for many started calls at once: a descriptor that poll(2) understands, callbacks, coroutines.
#pragma once

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lrpc/detail/client/call/pending.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"
#include "lrpc/detail/shim/system/futex.h"
#include "lrpc/detail/shim/system/sleeping_word.h"
#include "lrpc/detail/shim/system/thread.h"

namespace lrpc {

namespace client {

/// The state that a queue shares with the calls that it watches. It stays until the last of them is finished or
/// dropped, so the queue may end earlier.
struct QueueLink {
  explicit QueueLink(CompletionQueue& of, shim::ProcessNumber process) noexcept : owner(process), queue(&of) {}
  const shim::ProcessNumber owner;  ///< In another process (a forked child) nothing here is touched.
  std::mutex mutex;                 ///< Held while call words are read, so that no unwatched word is read.
  CompletionQueue* queue;           ///< Null: the queue has ended.
  std::size_t holders = 1;          ///< The queue, and each call that has this link.
};

}  // namespace client

/// Tells which of the watched calls have returned, or may wait no longer (call_timeout, CallScope). Functions and
/// coroutines run on the thread that calls run() or wait(). A helper thread only sleeps on the call words
/// (futex_waitv(2), at most 100 ms at a time) and makes fd() readable. It starts with the first watched call, blocks
/// signals, and sleeps without end while nothing is watched. If more than 127 calls are watched, it polls them every
/// millisecond.
///
/// Thread-safe. It may be destroyed before the calls that it watches; they go on as if they had never been watched. It
/// must not be destroyed by a function that it runs, nor while a thread is in one of its members; a watch() or co_await
/// counts as done once its call was reported. In a forked child it does nothing.
class CompletionQueue {
 public:
  /// system_error.
  static Result<std::unique_ptr<CompletionQueue>> create();
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  ~CompletionQueue();

  /// Readable while a watched call has returned and run() has not been called since. Owned by the queue; only poll it.
  /// No peer holds it; a peer can make it readable only by returning a call.
  [[nodiscard]] int fd() const noexcept { return ready_fd_.get(); }

  /// Runs `then` once, in run(), when `pending` is ready(). Forgets `then` if `pending` is finished or destroyed
  /// before. If `then` is empty, only fd() becomes readable. The call may be moved meanwhile. Never blocks. Errors:
  /// invalid_argument (the call was not started, or was refused before it was sent: finish() says why), not_supported
  /// (in a forked child), system_error (no thread could be started).
  template <class Outcome>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved
  Status watch(Pending<Outcome>& pending, std::function<void()> then = {}) {
    return watch_call(pending.call(), std::move(then));
  }
  /// Makes fd() unreadable, runs the functions of calls that have become ready, and returns how many calls these were.
  /// Never blocks by itself.
  std::size_t run();
  /// Waits at most `limit` for a call to become ready, then does what run() does. kNoLimit: waits without limit; zero
  /// or less: does not wait. Nothing else ends the wait: no signal, and no call that another thread's run() or finish()
  /// has taken. To be woken by something else, poll fd() with other descriptors.
  std::size_t wait(std::chrono::milliseconds limit);

 private:
  friend class client::PendingCall;
  struct Watched {
    client::BindingObject* binding = nullptr;
    shim::LinkageRecord* linkage = nullptr;
    shim::CallWord called;
    std::function<void()> then;
    std::chrono::steady_clock::time_point until;  ///< Copied from the linkage record by watch_call().
    std::shared_ptr<const shim::Cancellations> cancellations;
    bool ready = false;
    /// The node that moves into Calls::ready when the call is ready, so that the thread need not allocate.
    std::list<const shim::LinkageRecord*> place = std::list<const shim::LinkageRecord*>(1);
    std::list<const shim::LinkageRecord*>::iterator at = place.begin();  ///< The node, wherever it is.
    [[nodiscard]] bool look() const noexcept;
  };

  explicit CompletionQueue(UniqueFd ready_fd);
  Status watch_call(client::PendingCall& call, std::function<void()> then);
  /// Called before the call with this link is finished or abandoned.
  static void forget(client::QueueLink& link, const client::PendingCall& call) noexcept;
  void sleep_on_words();
  void check_servers() noexcept;
  [[nodiscard]] bool inert() const noexcept { return link_.owner != shim::this_process(); }
  static void unlink(client::QueueLink& link, std::unique_lock<std::mutex> lock) noexcept;

  client::QueueLink& link_;
  UniqueFd ready_fd_;
  shim::Thread thread_;
  shim::SleepingWord changed_;  ///< The thread sleeps on it; raised for each call that is added.
  /// Not freed in a forked child, because another thread of the parent may have been changing them.
  struct Calls {
    std::map<const shim::LinkageRecord*, Watched> watched;
    std::list<const shim::LinkageRecord*> ready;  ///< In the order in which they were seen to return.
  };
  std::unique_ptr<Calls> calls_ = std::make_unique<Calls>();
  std::vector<shim::FutexWait> waits_;  ///< Used only by the thread; has capacity for kMostFutexWaits.
};

/// A started call for `co_await`: `auto sum = co_await client.start().Add(1, 2).on(queue);`. The queue's run() resumes
/// the coroutine. If the call cannot be watched, co_await blocks as finish() does.
template <class Outcome>
class [[nodiscard]] Finishing {
 public:
  Finishing(Pending<Outcome> pending, CompletionQueue& queue) noexcept : pending_(std::move(pending)), queue_(queue) {}
  [[nodiscard]] bool await_ready() const noexcept { return pending_.ready(); }
  bool await_suspend(std::coroutine_handle<> coroutine) { return static_cast<bool>(queue_.watch(pending_, coroutine)); }
  typename Pending<Outcome>::Result await_resume() noexcept { return pending_.finish(); }

 private:
  Pending<Outcome> pending_;
  CompletionQueue& queue_;
};

template <class Outcome>
Finishing<Outcome> Pending<Outcome>::on(CompletionQueue& queue) && noexcept {
  return Finishing<Outcome>(std::move(*this), queue);
}

}  // namespace lrpc
