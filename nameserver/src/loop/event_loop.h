// The event loop: readiness of descriptors and timers on one thread, with two back ends that behave alike.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/turns.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// What a handler wants to hear about. Hang-ups it hears of in any case.
struct Interest {
  bool readable = false;
  bool writable = false;
};

/// What a descriptor is ready for. hung_up: an error, or the peer will send no more.
struct Readiness {
  bool readable = false;
  bool writable = false;
  bool hung_up = false;
};

/// Level-triggered: a handler that leaves something undone is called again. Not thread-safe but for stop(): everything
/// else happens before run() or inside handlers. Handlers may watch and forget anything, themselves included.
///
/// Users take turns, with one event at a time: however many of one user's descriptors are ready, one of another user's
/// waits for one handler of each user, and for a millisecond until it is seen.
///
/// A handler may throw std::bad_alloc, and the loop goes on: what it left undone is its own matter, but a timer's comes
/// again soon. watch(), change() and after() throw it, too, and have then done nothing; the others need no memory.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<void(Readiness)>;
  using WatchId = std::uint64_t;
  /// Names a timer until it has fired or was cancelled; a default one names none.
  struct TimerId {
    Clock::time_point when;
    std::uint64_t serial = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 stumbles over a defaulted operator<=>
    friend auto operator<=>(const TimerId&, const TimerId&) = default;
  };

  /// not_supported if the back end is refused. `automatic` falls back to epoll.
  static Result<std::unique_ptr<EventLoop>> create(Backend backend);

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  virtual ~EventLoop() = default;

  /// Whose turn it is. None: the loop's own user, beside all others.
  using User = std::optional<uid_t>;
  /// Calls `handler` whenever `fd` is ready and `whose` turn comes. The fd stays the caller's: forget() before closing
  /// it.
  Result<WatchId> watch(int fd, Interest interest, Handler handler, User whose = {});
  /// Changes what is heard about. Unknown ids are ignored.
  Status change(WatchId id, Interest interest);
  /// No call comes after this, not even for readiness already seen. Unknown ids are ignored.
  void forget(WatchId id);

  TimerId after(Clock::duration delay, std::function<void()> handler);
  void cancel(TimerId timer) { timers_.erase(timer); }

  /// Runs handlers until stop(). When it has returned, the kernel holds no reference to any watched descriptor.
  Status run();
  /// Runs, once and without waiting, the handlers of what is ready and of timers whose time has come; whether there
  /// were any. Instead of run(), for a program that goes step by step.
  Result<bool> step();
  /// Makes run() return soon, also one that has not begun. Any thread, and async-signal-safe.
  void stop() noexcept;

  /// A clock that stands still while run() waits and has nothing to do.
  [[nodiscard]] Clock::time_point busy_time() const noexcept { return Clock::now() - idle_; }

  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

 protected:
  struct Watch {
    WatchId id = 0;
    int fd = -1;
    Interest interest;
    Handler handler;
    // The back end's own.
    std::uint64_t token = 0;
    bool heard = false;
    Readiness ready{};  ///< For what it waits to be called.
  };
  struct Event {
    WatchId id = 0;
    Readiness readiness;
  };

  EventLoop() = default;
  Status make_stop_event();

  virtual Status arm(WatchId id, Watch& watch) = 0;
  virtual Status rearm(WatchId id, Watch& watch) = 0;  ///< The interest has changed.
  virtual void disarm(WatchId id, Watch& watch) noexcept = 0;
  virtual Status handled(WatchId, Watch&) { return {}; }  ///< An event was delivered and the watch is still there.
  /// Blocks until something is ready or the time has come, and appends what is ready, as far as there is room reserved:
  /// what is left is seen at the next look. What is appended may wait in line already.
  virtual Status wait(std::optional<Clock::time_point> until, std::vector<Event>& events) = 0;
  virtual void quiesce() noexcept {}

  [[nodiscard]] Watch* find(WatchId id) noexcept;

 private:
  using Turns = shim::Turns<User, std::shared_ptr<Watch>>;
  void remove(WatchId id, Turns::Place place) noexcept;
  void line_up(const std::vector<Event>& events) noexcept;
  Status take_turns(Clock::time_point until);
  Status take_turn();
  bool fire_timers();
  [[nodiscard]] std::optional<Clock::time_point> next_timer() const noexcept;
  [[nodiscard]] std::optional<Clock::time_point> next_round() const noexcept;

  std::unordered_map<WatchId, Turns::Place> watches_;
  Turns turns_;
  std::map<TimerId, std::function<void()>> timers_;
  std::vector<Event> events_;  ///< That the last look has found.
  WatchId last_watch_ = 0;
  std::uint64_t last_timer_ = 0;
  Clock::time_point no_timer_before_{};  ///< One has had no memory.
  Clock::duration idle_{};               ///< For so long run() has waited with nothing to do.
  UniqueFd stop_event_;
  bool stopped_ = false;
};

Result<std::unique_ptr<EventLoop>> make_epoll_loop();
Result<std::unique_ptr<EventLoop>> make_uring_loop();

}  // namespace lrpc::nameserver
