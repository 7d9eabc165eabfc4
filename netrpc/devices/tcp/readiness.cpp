#include "netrpc/devices/tcp/readiness.h"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <utility>

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

Readiness::~Readiness() {
  if (epoll_ >= 0) engine_.remove(watched_);
}

bool Readiness::watch(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_ADD, fd, id, events);
}
bool Readiness::watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_MOD, fd, id, events);
}

/// Some: timers and other sockets have their turn before the rest. What is called may let the monitor go, and another
/// thread come here meanwhile.
void Readiness::readable() noexcept {
  std::array<epoll_event, kAtOnce> events{};
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    ready_(event.data.u64, event.events);
  }
}

}  // namespace lrpc::netrpc
