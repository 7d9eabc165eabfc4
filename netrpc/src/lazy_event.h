// The timer of calls that follow each other: none of them moves it.
#pragma once

#include <algorithm>

#include "lrpc/netrpc/event_manager.h"

namespace lrpc::netrpc {

/// Is left running when what it was for is over. So it may come too early: its procedure then does nothing, or sets it
/// again for what it is for now.
class LazyEvent : public Event {
 public:
  using Event::Event;
  /// It is to run at `due`, or earlier. Time::max(): never.
  void run_by(EventManager& events, Time now, Time due) {
    if (due == Time::max() || (waiting() && due_ <= due)) return;
    due_ = due;
    events.schedule(*this, std::max(due - now, Duration(0)));
  }
  /// For when it was set last.
  [[nodiscard]] Time due() const noexcept { return due_; }

 private:
  Time due_{};
};

}  // namespace lrpc::netrpc
