#include "lrpc/netrpc/event_manager.h"

#include <utility>

namespace lrpc::netrpc {

Event::~Event() {
  if (waiting()) manager_->cancel(*this);  // if not waiting, the manager may be destroyed
  for (Run* run = runs_; run != nullptr; run = run->next) run->gone = true;
}

EventManager::~EventManager() {
  for (Event* event : heap_) {
    event->slot_ = Event::kNone;
    event->manager_ = nullptr;
  }
}

void EventManager::schedule(Event& event, Duration delay) {
  if (event.slot_ != Event::kNone) remove(event);
  event.due_ = deadline_after(clock_.now(), delay);
  event.order_ = ++order_;
  event.manager_ = this;
  heap_.push_back(&event);
  event.slot_ = heap_.size() - 1;
  rise(event.slot_);
  if (event.slot_ == 0 && on_earlier_) on_earlier_();
}

Cancelled EventManager::cancel(Event& event) noexcept {
  if (event.slot_ != Event::kNone) {
    remove(event);
    return Cancelled::will_not_run;
  }
  return event.runs_ != nullptr ? Cancelled::is_running : Cancelled::has_run;
}

std::optional<Time> EventManager::next_due() const noexcept {
  if (heap_.empty()) return std::nullopt;
  return heap_.front()->due_;
}

std::size_t EventManager::run_due() {
  const Time now = clock_.now();
  const std::uint64_t last = order_;  // events scheduled from here on wait for the next call
  std::size_t ran = 0;
  while (!heap_.empty() && heap_.front()->due_ <= now && heap_.front()->order_ <= last) {
    Event& event = *heap_.front();
    remove(event);
    Event::Run run;
    run.next = std::exchange(event.runs_, &run);
    event.procedure_();
    ++ran;
    if (run.gone) continue;
    // Not always the first: another thread may have begun later and may still run the procedure.
    Event::Run** link = &event.runs_;
    while (*link != &run) link = &(*link)->next;
    *link = run.next;
  }
  return ran;
}

bool EventManager::before(const Event& a, const Event& b) noexcept {
  return a.due_ != b.due_ ? a.due_ < b.due_ : a.order_ < b.order_;
}

void EventManager::place(Event* event, std::size_t slot) noexcept {
  heap_[slot] = event;
  event->slot_ = slot;
}

void EventManager::rise(std::size_t slot) noexcept {
  Event* const event = heap_[slot];
  while (slot > 0) {
    const std::size_t parent = (slot - 1) / 4;
    if (!before(*event, *heap_[parent])) break;
    place(heap_[parent], slot);
    slot = parent;
  }
  place(event, slot);
}

void EventManager::sink(std::size_t slot) noexcept {
  Event* const event = heap_[slot];
  for (;;) {
    const std::size_t first = slot * 4 + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < heap_.size() && child < first + 4; ++child)
      if (before(*heap_[child], *heap_[least])) least = child;
    if (!before(*heap_[least], *event)) break;
    place(heap_[least], slot);
    slot = least;
  }
  place(event, slot);
}

void EventManager::remove(Event& event) noexcept {
  const std::size_t slot = std::exchange(event.slot_, Event::kNone);
  Event* const moved = heap_.back();
  heap_.pop_back();
  if (moved == &event) return;
  place(moved, slot);
  rise(slot);
  sink(moved->slot_);
}

}  // namespace lrpc::netrpc
