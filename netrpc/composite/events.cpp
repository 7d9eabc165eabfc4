#include "netrpc/composite/events.h"

#include <new>

namespace lrpc::netrpc::composite {

constinit thread_local Events::Turn* Events::Turn::innermost = nullptr;

void Events::clear() noexcept {
  waiting_timers_.for_each([this](TimerId, Timer* timer) { timers_.destroy(*timer); });
  waiting_timers_.clear();
  for (const auto& [name, event] : events_) event->drop_handlers();
}

void Events::shuffle() {
  for (const auto& [name, event] : events_) event->shuffle([this] { return host_.random(); });
}

void Events::defer(Deferred& later, Turn& turn) noexcept {
  (turn.first_ != nullptr ? turn.last_->next : turn.first_) = &later;
  turn.last_ = &later;
}

void Events::end(Turn& turn) noexcept {
  while (turn.first_ != nullptr) std::exchange(turn.first_, turn.first_->next)->run();
  if (threads_) threads_->wait(turn.round_);
}

/// What it raises belongs to the turn that it was raised in, which has not ended.
void Events::Deferred::run() noexcept {
  const Turn here(events_, turn_);
  what.run(events_);
  events_.deferred_.destroy(*this);
}

Events::TimerId Events::begin(Timer* timer) noexcept {
  if (timer == nullptr) return 0;
  timer->id = ++last_timer_;
  try {
    waiting_timers_.bind(timer->id, timer);
    host_.events().schedule(timer->event, timer->pause);
    return timer->id;
  } catch (const std::bad_alloc&) {
    waiting_timers_.unbind(timer->id);
    timers_.destroy(*timer);
    return 0;
  }
}

Time Events::due(TimerId timer) noexcept {
  Timer** const known = waiting_timers_.resolve(timer);
  return known != nullptr ? (*known)->event.due() : Time::max();
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
  ++raised_;
  if (timer.repeat == Repeat::once) {
    waiting_timers_.unbind(id);
    timer.what.run(*this);
    timers_.destroy(timer);
    return;
  }
  timer.what.run(*this);
  if (waiting_timers_.resolve(id) == nullptr) return;
  try {
    host_.events().schedule(timer.event, timer.pause);
  } catch (const std::bad_alloc&) {
    cancel_timer(id);
  }
}

}  // namespace lrpc::netrpc::composite
