// The event manager: procedures to be called at a later time (The x-Kernel §II.A).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc {

class EventManager;

/// The state in which cancel() has found an event.
enum class Cancelled : std::uint8_t {
  will_not_run,  ///< It was waiting, and will never run.
  is_running,    ///< Its procedure is running now: in this thread, or in one that has released the monitor meanwhile.
  has_run,       ///< It was not waiting: it has run, or was never scheduled.
};

/// A timer: a procedure and when it is due. Lies in the object whose timer it is, so that setting it allocates nothing.
/// Cancels itself when destroyed. All use is under the host's monitor.
class Event {
 public:
  explicit Event(std::function<void()> procedure) : procedure_(std::move(procedure)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  [[nodiscard]] bool waiting() const noexcept { return manager_ != nullptr && slot_ != kNone; }
  /// When the event is due; valid while waiting(), and in its procedure until it is scheduled again.
  [[nodiscard]] Time due() const noexcept { return due_; }

 private:
  friend class EventManager;
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::function<void()> procedure_;
  EventManager* manager_ = nullptr;
  std::size_t slot_ = kNone;
  Time due_{};
  std::uint64_t order_ = 0;
  /// A record on the stack of each thread that runs the procedure; it tells that thread if the event is destroyed
  /// meanwhile. There are several if a procedure releases the monitor and the event, scheduled again, runs in another
  /// thread, too.
  struct Run {
    bool gone = false;
    Run* next = nullptr;
  };
  Run* runs_ = nullptr;
};

/// A heap of events over an injected clock. Not thread-safe: under the host's monitor. Scheduling and cancelling cost
/// O(log n) for n waiting events; events due at the same time run in the order in which they were scheduled.
class EventManager {
 public:
  explicit EventManager(const Clock& clock) : clock_(clock) {}
  EventManager(const EventManager&) = delete;
  EventManager& operator=(const EventManager&) = delete;
  ~EventManager();

  /// Lets `event` run once, `delay` from now; an event that is waiting is moved. May be called from its own procedure.
  void schedule(Event& event, Duration delay);
  Cancelled cancel(Event& event) noexcept;
  /// When the next event is due; nothing if none waits.
  [[nodiscard]] std::optional<Time> next_due() const noexcept;
  /// Runs the events that are due. Returns their number, which is at most that of the events waiting at the start.
  std::size_t run_due();
  [[nodiscard]] std::size_t waiting() const noexcept { return heap_.size(); }
  [[nodiscard]] Time now() const noexcept { return clock_.now(); }

  /// Called when an event becomes the first one due: a thread that sleeps until next_due() must compute its sleep anew.
  void on_earlier(std::function<void()> procedure) { on_earlier_ = std::move(procedure); }

 private:
  [[nodiscard]] static bool before(const Event& a, const Event& b) noexcept;
  void place(Event* event, std::size_t slot) noexcept;
  void rise(std::size_t slot) noexcept;
  void sink(std::size_t slot) noexcept;
  void remove(Event& event) noexcept;

  const Clock& clock_;
  std::vector<Event*> heap_;
  std::uint64_t order_ = 0;
  std::function<void()> on_earlier_;
};

}  // namespace lrpc::netrpc
