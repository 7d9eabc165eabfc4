// What both back ends share: watches, timers, and the order in which things happen.
#include "event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "lrpc/detail/shim/binder/closing_again.h"
#include "no_memory.h"

namespace lrpc::nameserver {
namespace {

/// Of one look at what is ready. The next one finds the others.
constexpr std::size_t kMostEvents = 1024;
/// Between two looks at what is ready, while there are turns to be taken: a look costs as much as some turns.
constexpr std::chrono::milliseconds kTurns{1};
/// A timer that had no memory is tried again after this.
constexpr std::chrono::milliseconds kMemoryPause{10};

std::uint64_t key_of(EventLoop::User user) noexcept { return user ? std::uint64_t{*user} + 1 : 0; }

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create(Backend backend) {
  if (backend != Backend::epoll) {
    auto loop = make_uring_loop();
    // Whatever the reason (ENOSYS, a sandbox's EPERM, a sysctl, locked memory): epoll does the same work.
    if (loop || backend == Backend::io_uring) return loop;
  }
  return make_epoll_loop();
}

Status EventLoop::make_stop_event() {
  events_.reserve(kMostEvents);
  stop_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event_) return system_error("eventfd", errno);
  auto watched = watch(stop_event_.get(), {.readable = true}, [this](Readiness) { stopped_ = true; });
  if (!watched) return watched.error();
  return {};
}

Result<EventLoop::WatchId> EventLoop::watch(int fd, Interest interest, Handler handler, User whose) {
  const WatchId id = ++last_watch_;
  const auto watch = std::make_shared<Watch>(Watch{fd, interest, std::move(handler)});
  watch->self.push_back(id);
  watch->place = watch->self.begin();
  const auto made = watches_.emplace(id, watch).first;
  Status armed;
  try {
    watch->line = &line_of(whose);
    ++watch->line->watches;
    armed = arm(id, *watch);
  } catch (const std::bad_alloc&) {
    leave(*watch);
    watches_.erase(made);
    throw;
  }
  if (armed) return id;
  leave(*watch);
  watches_.erase(made);
  return armed.error();
}

Status EventLoop::change(WatchId id, Interest interest) {
  Watch* watch = find(id);
  if (watch == nullptr) return {};
  if (watch->interest.readable == interest.readable && watch->interest.writable == interest.writable) return {};
  const Interest before = std::exchange(watch->interest, interest);
  try {
    auto armed = rearm(id, *watch);
    if (!armed) watch->interest = before;
    return armed;
  } catch (const std::bad_alloc&) {
    watch->interest = before;
    throw;
  }
}

void EventLoop::forget(WatchId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  disarm(id, *found->second);
  leave(*found->second);
  watches_.erase(found);
}

EventLoop::TimerId EventLoop::after(Clock::duration delay, std::function<void()> handler) {
  const TimerId timer{Clock::now() + delay, ++last_timer_};
  timers_.emplace(timer, std::move(handler));
  return timer;
}

EventLoop::Watch* EventLoop::find(WatchId id) noexcept {
  const auto found = watches_.find(id);
  return found != watches_.end() ? found->second.get() : nullptr;
}

Status EventLoop::run() {
  Status status;
  while (status && !stopped_) {
    events_.clear();
    const auto next = next_round();  // also while turns wait: what is to be closed aside is tried again
    const auto now = Clock::now();
    const bool idle = turns_.empty();
    status = wait(idle ? next : now, events_);
    if (idle) idle_ += Clock::now() - now;
    line_up(events_);
    if (status) status = take_turns(Clock::now() + kTurns);
    fire_timers();
  }
  quiesce();
  return status;
}

Result<bool> EventLoop::step() {
  events_.clear();
  if (auto status = wait(Clock::now(), events_); !status) return status.error();
  line_up(events_);
  if (auto status = take_turns(Clock::time_point::max()); !status) return status.error();
  return fire_timers() || !events_.empty();
}

void EventLoop::stop() noexcept {
  const std::uint64_t one = 1;
  // Only a full counter can refuse it, and then the loop is already being told.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_.get(), &one, sizeof one);
}

// ---- turns ----

EventLoop::Line& EventLoop::line_of(User user) {
  const std::uint64_t key = key_of(user);
  if (const auto found = lines_.find(key); found != lines_.end()) return found->second;
  std::list<Line*> self{nullptr};  // first: without memory for it no line is left behind
  Line& line = lines_[key];
  line.user = user;
  line.self.swap(self);
  line.place = line.self.begin();
  *line.place = &line;
  return line;
}

/// It waits no longer, and has no line any more.
void EventLoop::leave(Watch& watch) noexcept {
  Line* const line = std::exchange(watch.line, nullptr);
  if (line == nullptr) return;
  if (watch.self.empty()) watch.self.splice(watch.self.end(), line->waiting, watch.place);
  if (line->waiting.empty() && line->self.empty()) line->self.splice(line->self.end(), turns_, line->place);
  if (--line->watches == 0) lines_.erase(key_of(line->user));
}

/// Needs no memory.
void EventLoop::line_up(const std::vector<Event>& events) noexcept {
  for (const Event& event : events) {
    Watch* const watch = find(event.id);
    if (watch == nullptr) continue;
    watch->ready = event.readiness;
    Line& line = *watch->line;
    if (!watch->self.empty()) line.waiting.splice(line.waiting.end(), watch->self);
    if (!line.self.empty()) turns_.splice(turns_.end(), line.self);
  }
}

/// Each user's first in line, one after the other, and again, until nobody waits or the time has come. The next look
/// goes on where this one ends.
Status EventLoop::take_turns(Clock::time_point until) {
  while (!turns_.empty() && !stopped_) {
    if (auto status = take_turn(); !status) return status;
    if (Clock::now() >= until) break;
  }
  return {};
}

Status EventLoop::take_turn() {
  Line& line = *turns_.front();
  const WatchId id = line.waiting.front();
  const auto watch = watches_.at(id);  // keeps the handler alive while it forgets itself
  watch->self.splice(watch->self.end(), line.waiting, watch->place);
  if (line.waiting.empty()) {
    line.self.splice(line.self.end(), turns_, line.place);
  } else {
    turns_.splice(turns_.end(), turns_, line.place);
  }
  (void)as_memory_allows([&] { watch->handler(watch->ready); });  // so much for this event
  return find(id) != nullptr ? handled(id, *watch) : Status();
}

std::optional<EventLoop::Clock::time_point> EventLoop::next_timer() const noexcept {
  if (timers_.empty()) return std::nullopt;
  return std::max(timers_.begin()->first.when, no_timer_before_);
}

/// Sooner if something waits to be closed aside that has no thread yet: the loop itself may be all that happens here.
std::optional<EventLoop::Clock::time_point> EventLoop::next_round() const noexcept {
  const auto timer = next_timer();
  if (!shim::close_aside_again()) return timer;
  const auto again = Clock::now() + shim::kClosingPause;
  return timer ? std::min(*timer, again) : again;
}

/// Whether there were any.
bool EventLoop::fire_timers() {
  // Those of now only: a handler that sets a timer for at once must not keep the descriptors waiting.
  const auto now = Clock::now();
  if (now < no_timer_before_) return false;
  const std::uint64_t last = last_timer_;
  bool fired = false;
  for (auto next = timers_.begin(); next != timers_.end();) {
    const TimerId id = next->first;
    if (id.when > now || id.serial > last) break;
    auto timer = timers_.extract(next);
    fired = true;
    try {
      timer.mapped()();
    } catch (const std::bad_alloc&) {
      // Nothing else may ever come back to what it was for. It is the same timer still, and can be cancelled.
      timers_.insert(std::move(timer));
      no_timer_before_ = now + kMemoryPause;
    }
    next = timers_.upper_bound(id);
  }
  return fired;
}

}  // namespace lrpc::nameserver
