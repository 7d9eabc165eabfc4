#include "netrpc/devices/tcp/readiness.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <new>
#include <utility>

namespace lrpc::netrpc {
namespace {

/// Reports that stay in the list when they have been taken.
constexpr std::size_t kKept = 64;
constexpr std::uint64_t kStop = ~std::uint64_t{0};
/// Milliseconds before the engine is told again, and before memory that could not be had is asked for again.
constexpr int kTellAgain = 20;
/// Before a thread that could not be had is tried again.
constexpr Duration kAgain = std::chrono::seconds(1);

bool watch_at(int epoll, int operation, int fd, std::uint64_t id, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

Readiness::Readiness(Host& host, UringEngine& engine, Ready ready)
    : host_(host), engine_(engine), ready_(std::move(ready)), begin_([this] { begin(); }) {}

Result<std::unique_ptr<Readiness>> Readiness::make(Host& host, UringEngine& engine, std::size_t most, Ready ready) {
  std::unique_ptr<Readiness> made(new Readiness(host, engine, std::move(ready)));
  made->found_.reserve(2 * most + kKept);  // closed ones, too, until they have been looked at
  made->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  made->stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made->epoll_ || !made->stop_ || !watch_at(made->epoll_.get(), EPOLL_CTL_ADD, made->stop_.get(), kStop, EPOLLIN))
    return system_error("epoll", errno);
  int ends[2];  // not of datagrams, which reach every Unix datagram socket of the system by its path
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair", errno);
  made->tell_ = UniqueFd(ends[1]);
  made->told_ = engine.add(host, ends[0], *made);
  made->open_ = true;
  host.events().schedule(made->begin_, Duration(0));
  return made;
}

Readiness::~Readiness() {
  if (open_) engine_.remove(told_);
  if (!thread_.running()) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  thread_.join();  // it never waits for the monitor
}

void Readiness::begin() noexcept {
  const auto body = [](void* self) -> void* { return static_cast<Readiness*>(self)->run(), nullptr; };
  if (!thread_.start({.name = "lrpc-tcp"}, body, this)) host_.events().schedule(begin_, kAgain);
}

bool Readiness::watch(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_.get(), EPOLL_CTL_ADD, fd, id, events | EPOLLONESHOT);
}
bool Readiness::watch_again(int fd, std::uint64_t id, std::uint32_t events) noexcept {
  return watch_at(epoll_.get(), EPOLL_CTL_MOD, fd, id, events | EPOLLONESHOT);
}

void Readiness::run() noexcept {
  std::array<epoll_event, 64> events{};
  for (;;) {
    // Also of what it was told already: the engine loses a datagram where it has no memory.
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), untaken() != 0 ? kTellAgain : -1);
    if (count < 0 && errno != EINTR) return;
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == kStop) return;
      while (!add({event.data.u64, event.events})) {
        pollfd stop{.fd = stop_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&stop, 1, kTellAgain) > 0) return;
      }
    }
    // If there is no room for one more, one is there that has not been read yet.
    const std::byte byte{};
    if (untaken() != 0) (void)::send(tell_.get(), &byte, sizeof byte, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

bool Readiness::add(const One& one) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    found_.push_back(one);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::optional<Readiness::One> Readiness::take() noexcept {
  const std::lock_guard lock(mutex_);
  if (next_ >= kKept || next_ == found_.size()) {
    found_.erase(found_.begin(), found_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }
  if (found_.empty()) return std::nullopt;
  return found_[next_++];
}

std::size_t Readiness::untaken() noexcept {
  const std::lock_guard lock(mutex_);
  return found_.size() - next_;
}

/// Takes what is there now. What comes meanwhile, perhaps from the same peers, has its own datagram: timers and other
/// sockets have their turn before it. What is called may let the monitor go, and another thread come here meanwhile.
void Readiness::arrived(Message /*message*/, std::span<const std::byte> /*from*/) noexcept {
  for (std::size_t left = untaken(); left != 0; --left) {
    const auto one = take();
    if (!one) return;
    ready_(one->id, one->events);
  }
}

}  // namespace lrpc::netrpc
