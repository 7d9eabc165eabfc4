#include "netrpc/composite/events.h"

#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

constinit thread_local Events::Turn* Events::Turn::innermost = nullptr;

/// What it raises belongs to the turn that it was raised in, which has not ended.
void Events::Deferred::run() noexcept {
  const Turn here(events_, turn_);
  what.run(events_);
  events_.deferred_.destroy(*this);
}

Events::TimerId Events::begin(Timer* timer) noexcept {
  if (timer == nullptr) return 0;
  timer->id = ++last_timer_;
  const bool set = attempt([&] {
    waiting_timers_.bind(timer->id, timer);
    host_.events().schedule(timer->event, timer->pause);
  });
  if (set) return timer->id;
  waiting_timers_.unbind(timer->id);
  timers_.destroy(*timer);
  return 0;
}

void Events::cancel_timer(TimerId timer) noexcept {
  Timer** const known = waiting_timers_.resolve(timer);
  if (known == nullptr) return;
  Timer& one = **known;
  waiting_timers_.unbind(timer);
  timers_.destroy(one);
}

/// Handlers may cancel the timer while they run.
void Events::expired(Timer& timer) noexcept {
  const Turn turn(*this);
  const TimerId id = timer.id;
  const bool once = timer.repeat == Repeat::once;
  ++raised_;
  if (once) waiting_timers_.unbind(id);
  timer.what.run(*this);
  if (once) return timers_.destroy(timer);
  if (waiting_timers_.resolve(id) == nullptr) return;
  if (!attempt([&] { host_.events().schedule(timer.event, timer.pause); })) cancel_timer(id);
}

}  // namespace lrpc::netrpc::composite
