#include "netrpc/composite/events.h"

#include <new>

namespace lrpc::netrpc::composite {

constinit thread_local Events::Turn* Events::Turn::innermost = nullptr;

void Events::clear() noexcept {
  waiting_timers_.for_each([this](const TimerKey&, Timer* timer) { timers_.destroy(*timer); });
  waiting_timers_.clear();
  for (const auto& [name, event] : events_) event->drop_handlers();
}

void Events::shuffle() {
  for (const auto& [name, event] : events_) event->shuffle([this] { return host_.random(); });
}

void Events::defer(Deferred& later) noexcept {
  Turn here(*this);
  Turn* turn = &here;
  while (turn->within_ != nullptr) turn = turn->within_;
  (turn->first_ != nullptr ? turn->last_->next : turn->first_) = &later;
  turn->last_ = &later;
}

void Events::run_deferred(Turn& turn) noexcept {
  while (turn.first_ != nullptr) {
    Deferred& one = *std::exchange(turn.first_, turn.first_->next);
    activations_ += one.what.run();
    deferred_.destroy(one);
  }
}

Events::TimerId Events::begin(Timer* timer) noexcept {
  if (timer == nullptr) return 0;
  timer->id = ++last_timer_;
  try {
    waiting_timers_.bind({timer->id}, timer);
    host_.events().schedule(timer->event, timer->pause);
    return timer->id;
  } catch (const std::bad_alloc&) {
    waiting_timers_.unbind({timer->id});
    timers_.destroy(*timer);
    return 0;
  }
}

void Events::cancel_timer(TimerId timer) noexcept {
  Timer** const known = waiting_timers_.resolve({timer});
  if (known == nullptr) return;
  Timer& one = **known;
  waiting_timers_.unbind({timer});
  timers_.destroy(one);
}

/// Handlers may cancel it meanwhile.
void Events::expired(Timer& timer) noexcept {
  const Turn turn(*this);
  const TimerId id = timer.id;
  ++raised_;
  if (timer.repeat == Repeat::once) {
    waiting_timers_.unbind({id});
    activations_ += timer.what.run();
    timers_.destroy(timer);
    return;
  }
  activations_ += timer.what.run();
  if (waiting_timers_.resolve({id}) == nullptr) return;
  try {
    host_.events().schedule(timer.event, timer.pause);
  } catch (const std::bad_alloc&) {
    cancel_timer(id);
  }
}

}  // namespace lrpc::netrpc::composite
