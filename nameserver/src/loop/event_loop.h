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

/// The events for which a handler is called. It is called for hang-ups in any case.
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

/// Level-triggered: a handler that leaves something undone is called again. Not thread-safe except stop(): everything
/// else happens before run() or inside handlers. Handlers may watch and forget anything, themselves included.
///
/// Users take turns, with one event each: however many of one user's descriptors are ready, another user's descriptor
/// waits for at most one handler of each user, after a millisecond at most until its readiness is noticed.
///
/// A handler may throw std::bad_alloc, and the loop goes on. A timer's handler is then called again soon; another
/// handler must itself see to what it left undone. watch(), change() and after() throw it, too, and have then done
/// nothing; the others need no memory.
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

  /// The user in whose turn a handler is called. None: the loop itself, which takes turns with the users.
  using User = std::optional<uid_t>;
  /// Calls `handler` whenever `fd` is ready and `whose` turn comes. The fd stays the caller's: forget() before closing
  /// it.
  Result<WatchId> watch(int fd, Interest interest, Handler handler, User whose = {});
  /// Changes the events of a watch. Unknown ids are ignored.
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
    Readiness ready{};  ///< The readiness with which its handler will be called.
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
  virtual void handled(WatchId, Watch&) noexcept {}  ///< An event was delivered and the watch is still there.
  /// Blocks until something is ready or `until` has come, and appends what is ready, as far as `events` has reserved
  /// room; the next call finds the rest. A watch that it appends may already wait for its turn.
  virtual Status wait(std::optional<Clock::time_point> until, std::vector<Event>& events) = 0;
  virtual void quiesce() noexcept {}

  [[nodiscard]] Watch* find(WatchId id) noexcept;

 private:
  using Turns = shim::Turns<User, std::shared_ptr<Watch>>;
  void remove(WatchId id, Turns::Place place) noexcept;
  void line_up(const std::vector<Event>& events) noexcept;
  void take_turns(Clock::time_point until);
  bool fire_timers(Clock::time_point until);
  [[nodiscard]] std::optional<Clock::time_point> next_round() const noexcept;

  std::unordered_map<WatchId, Turns::Place> watches_;
  Turns turns_;
  std::map<TimerId, std::function<void()>> timers_;
  std::vector<Event> events_;  ///< Found by the last wait().
  WatchId last_watch_ = 0;
  std::uint64_t last_timer_ = 0;
  Clock::time_point no_timer_before_{};  ///< Set when a timer's handler had no memory.
  Clock::duration idle_{};               ///< How long run() has waited with nothing to do.
  UniqueFd stop_event_;
  bool stopped_ = false;
};

Result<std::unique_ptr<EventLoop>> make_epoll_loop();
Result<std::unique_ptr<EventLoop>> make_uring_loop();

}  // namespace lrpc::nameserver
