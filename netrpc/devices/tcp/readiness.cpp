#include "netrpc/devices/tcp/readiness.h"

#include <sys/epoll.h>

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

Readiness::~Readiness() {
  if (epoll_ >= 0) engine_.remove(watched_);
}

bool Readiness::watch(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_ADD, fd, id, events);
}
bool Readiness::watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_, EPOLL_CTL_MOD, fd, id, events);
}

/// One at a time: timers and other sockets have their turn before the next, and what is called may let the monitor go:
/// then another thread comes here for the rest.
void Readiness::readable() noexcept {
  epoll_event event{};
  if (::epoll_wait(epoll_, &event, 1, 0) == 1) ready_(event.data.u64, event.events);
}

}  // namespace lrpc::netrpc
