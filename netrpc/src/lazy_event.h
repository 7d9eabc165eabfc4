// A timer for consecutive calls, which they need not reschedule.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/event_manager.h"

namespace lrpc::netrpc {

/// Stays scheduled after the call for which it was set has ended. So it may run too early: its procedure then does
/// nothing, or schedules it for the present call.
class LazyEvent : public Event {
 public:
  using Event::Event;
  /// Makes the event run at `due` or earlier. Time::max(): changes nothing.
  void run_by(EventManager& events, Time now, Time due) {
    if (due == Time::max() || (waiting() && due_ <= due)) return;
    due_ = due;
    events.schedule(*this, std::max(due - now, Duration(0)));
  }
  /// The time for which it was set last.
  [[nodiscard]] Time due() const noexcept { return due_; }

 private:
  Time due_{};
};

}  // namespace lrpc::netrpc
