// What both back ends share: watches, timers, and the order in which things happen.
#include "event_loop.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "lrpc/detail/shim/binder/closing_again.h"
#include "no_memory.h"

namespace lrpc::nameserver {
namespace {

/// The most events of one wait(). The next one finds the others.
constexpr std::size_t kMostEvents = 1024;
/// How long turns are taken before the next wait(), which costs as much as some turns.
constexpr std::chrono::milliseconds kTurns{1};
/// A timer whose handler had no memory fires again after this.
constexpr std::chrono::milliseconds kMemoryPause{10};

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
  const auto place = turns_.join(whose, std::make_shared<Watch>(Watch{id, fd, interest, std::move(handler)}));
  Status armed;
  try {
    watches_.emplace(id, place);
    armed = arm(id, *place->member);
  } catch (const std::bad_alloc&) {
    remove(id, place);
    throw;
  }
  if (armed) return id;
  remove(id, place);
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
  const auto place = found->second;
  disarm(id, *place->member);
  remove(id, place);
}

void EventLoop::remove(WatchId id, Turns::Place place) noexcept {
  watches_.erase(id);
  turns_.leave(place);
}

EventLoop::TimerId EventLoop::after(Clock::duration delay, std::function<void()> handler) {
  const TimerId timer{Clock::now() + delay, ++last_timer_};
  timers_.emplace(timer, std::move(handler));
  return timer;
}

EventLoop::Watch* EventLoop::find(WatchId id) noexcept {
  const auto found = watches_.find(id);
  return found != watches_.end() ? found->second->member.get() : nullptr;
}

Status EventLoop::run() {
  Status status;
  while (status && !stopped_) {
    events_.clear();
    const auto next = next_round();  // also while turns wait: it retries what is to be closed aside
    const auto now = Clock::now();
    const bool idle = !turns_.any();
    status = wait(idle ? next : now, events_);
    if (idle) idle_ += Clock::now() - now;
    line_up(events_);
    if (status) take_turns(Clock::now() + kTurns);
    fire_timers(Clock::now() + kTurns);
  }
  quiesce();
  return status;
}

Result<bool> EventLoop::step() {
  events_.clear();
  if (auto status = wait(Clock::now(), events_); !status) return status.error();
  line_up(events_);
  take_turns(Clock::time_point::max());
  return fire_timers(Clock::time_point::max()) || !events_.empty();
}

void EventLoop::stop() noexcept {
  // It fails only if the counter is full, and then the loop is already being stopped.
  (void)::eventfd_write(stop_event_.get(), 1);
}

// ---- turns ----

/// Needs no memory.
void EventLoop::line_up(const std::vector<Event>& events) noexcept {
  for (const Event& event : events) {
    const auto found = watches_.find(event.id);
    if (found == watches_.end()) continue;
    found->second->member->ready = event.readiness;
    turns_.wait(found->second);
  }
}

/// Calls the handler of each user's first waiting watch in turn, and again, until none waits or `until` has come. The
/// next call continues where this one ends.
void EventLoop::take_turns(Clock::time_point until) {
  while (turns_.any() && !stopped_) {
    const auto watch = turns_.take()->member;                       // keeps the handler alive while it forgets itself
    (void)as_memory_allows([&] { watch->handler(watch->ready); });  // a bad_alloc ends this event
    if (find(watch->id) != nullptr) handled(watch->id, *watch);
    if (Clock::now() >= until) break;
  }
}

/// The next timer, or sooner if something to be closed aside has no thread yet: nothing else may wake this process.
std::optional<EventLoop::Clock::time_point> EventLoop::next_round() const noexcept {
  std::optional<Clock::time_point> next;
  if (!timers_.empty()) next = std::max(timers_.begin()->first.when, no_timer_before_);
  if (!shim::close_aside_again()) return next;
  const auto again = Clock::now() + shim::kClosingPause;
  return next ? std::min(*next, again) : again;
}

/// Fires a timer that is due, and others until `until` has come: users choose when theirs are due, and others must not
/// wait for all of them. Returns whether any timer fired.
bool EventLoop::fire_timers(Clock::time_point until) {
  // Only timers set before now: a handler that sets a timer for at once must not keep the descriptors waiting.
  const auto now = Clock::now();
  if (now < no_timer_before_) return false;
  const std::uint64_t last = last_timer_;
  bool fired = false;
  for (auto next = timers_.begin(); next != timers_.end();) {
    const TimerId id = next->first;
    if (id.when > now || id.serial > last || (fired && Clock::now() >= until)) break;
    auto timer = timers_.extract(next);
    fired = true;
    try {
      timer.mapped()();
    } catch (const std::bad_alloc&) {
      // Fire it again, because nothing else may ever do its work. It keeps its id, and so can be cancelled.
      timers_.insert(std::move(timer));
      no_timer_before_ = now + kMemoryPause;
    }
    next = timers_.upper_bound(id);
  }
  return fired;
}

}  // namespace lrpc::nameserver
