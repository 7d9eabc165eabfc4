#include "netrpc/devices/tcp/readiness.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lrpc/shim/system/fd.h"

namespace lrpc::netrpc {
namespace {

bool watch_at(int epoll, int operation, int fd, std::uint64_t id, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events | EPOLLONESHOT;
  event.data.u64 = id;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Readiness>> Readiness::make(Host& host, UringEngine& engine, Ready ready) {
  std::unique_ptr<Readiness> made(new Readiness(engine, std::move(ready)));
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("epoll_create1", errno);
  made->watched_ = engine.watch(host, epoll.get(), *made);
  made->epoll_ = epoll.release();
  return made;
}

bool Readiness::watch(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_ADD, fd, id, events);
}
bool Readiness::watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_MOD, fd, id, events);
}

/// One at a time, and the rest as the engine's other arrivals: what is called may let the monitor go, and then another
/// thread, which the engine wakes for that, comes here for the next. Timers have their turn before the set is asked
/// again.
void Readiness::readable() noexcept {
  if (next_ == count_) {
    next_ = 0;
    count_ = std::max(::epoll_wait(epoll_, found_.data(), static_cast<int>(found_.size()), 0), 0);
  }
  bool here = true;
  while (here && next_ != count_) {
    const epoll_event event = found_[static_cast<std::size_t>(next_++)];
    here = next_ != count_ && !engine_.tell_again(watched_);
    ready_(event.data.u64, event.events);
  }
}

}  // namespace lrpc::netrpc
