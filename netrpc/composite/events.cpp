#include "netrpc/composite/events.h"

#include <new>

namespace lrpc::netrpc::composite {

void Events::clear() noexcept {
  while (first_ != nullptr) deferred_.destroy(*std::exchange(first_, first_->next));
  waiting_timers_.for_each([this](const TimerKey&, Timer* timer) { timers_.destroy(*timer); });
  waiting_timers_.clear();
}

void Events::shuffle() {
  for (const auto& [name, event] : events_) event->shuffle([this] { return host_.random(); });
}

bool Events::defer(Deferred* later) noexcept {
  if (later == nullptr) return false;
  Deferred** end = &first_;  // few wait
  while (*end != nullptr) end = &(*end)->next;
  *end = later;
  return true;
}

bool Events::outermost(const Turn& turn) const noexcept {
  for (const Turn* other = turns_; other != nullptr; other = other->others_)
    if (other != &turn && other->thread_ == turn.thread_) return false;
  return true;
}

void Events::run_deferred(std::thread::id thread) noexcept {
  for (;;) {
    Deferred** next = &first_;
    while (*next != nullptr && (*next)->raised_in != thread) next = &(*next)->next;
    if (*next == nullptr) return;
    Deferred& one = **next;
    *next = one.next;
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
