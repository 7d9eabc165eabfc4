// What both back ends share: watches, timers, and the order in which things happen.
#include "event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace lrpc::nameserver {

Result<std::unique_ptr<EventLoop>> EventLoop::create(Backend backend) {
  if (backend != Backend::epoll) {
    auto loop = make_uring_loop();
    // Whatever the reason (ENOSYS, a sandbox's EPERM, a sysctl, locked memory): epoll does the same work.
    if (loop || backend == Backend::io_uring) return loop;
  }
  return make_epoll_loop();
}

Status EventLoop::make_stop_event() {
  stop_event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_event_) return system_error("eventfd", errno);
  auto watched = watch(stop_event_.get(), {.readable = true}, [this](Readiness) { stopped_ = true; });
  if (!watched) return watched.error();
  return {};
}

Result<EventLoop::WatchId> EventLoop::watch(int fd, Interest interest, Handler handler) {
  const WatchId id = ++last_watch_;
  auto made = std::make_shared<Watch>(Watch{fd, interest, std::move(handler), 0});
  if (auto armed = arm(id, *made); !armed) return armed.error();
  watches_.emplace(id, std::move(made));
  return id;
}

Status EventLoop::change(WatchId id, Interest interest) {
  Watch* watch = find(id);
  if (watch == nullptr) return {};
  if (watch->interest.readable == interest.readable && watch->interest.writable == interest.writable) return {};
  watch->interest = interest;
  return rearm(id, *watch);
}

void EventLoop::forget(WatchId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  disarm(id, *found->second);
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
  std::vector<Event> events;
  Status status;
  while (status && !stopped_) {
    events.clear();
    std::optional<Clock::time_point> until;
    if (!timers_.empty()) until = timers_.begin()->first.when;
    status = wait(until, events);
    if (status) status = deliver(events);
    fire_timers();
  }
  quiesce();
  return status;
}

Result<bool> EventLoop::step() {
  std::vector<Event> events;
  if (auto status = wait(Clock::now(), events); !status) return status.error();
  if (auto status = deliver(events); !status) return status.error();
  return fire_timers() || !events.empty();
}

void EventLoop::stop() noexcept {
  const std::uint64_t one = 1;
  // Only a full counter can refuse it, and then the loop is already being told.
  [[maybe_unused]] const ssize_t written = ::write(stop_event_.get(), &one, sizeof one);
}

Status EventLoop::deliver(const std::vector<Event>& events) {
  for (const Event& event : events) {
    const auto found = watches_.find(event.id);
    if (found == watches_.end()) continue;  // forgotten by an earlier handler of this round
    const auto watch = found->second;       // keeps the handler alive while it forgets itself
    watch->handler(event.readiness);
    if (find(event.id) != nullptr) {
      if (auto status = handled(event.id, *watch); !status) return status;
    }
  }
  return {};
}

/// Whether there were any.
bool EventLoop::fire_timers() {
  // Those of now only: a handler that sets a timer for at once must not keep the descriptors waiting.
  const auto now = Clock::now();
  const std::uint64_t last = last_timer_;
  bool fired = false;
  while (!timers_.empty()) {
    const auto first = timers_.begin();
    if (first->first.when > now || first->first.serial > last) break;
    const auto handler = std::move(first->second);
    timers_.erase(first);
    handler();
    fired = true;
  }
  return fired;
}

}  // namespace lrpc::nameserver
