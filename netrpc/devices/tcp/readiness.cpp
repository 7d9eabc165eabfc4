#include "netrpc/devices/tcp/readiness.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "lrpc/detail/shim/system/lack.h"

namespace lrpc::netrpc {
namespace {

constexpr std::uint64_t kMore = ~std::uint64_t{0};
/// The most turns in a row before timers run.
constexpr std::size_t kTurns = 16;

bool watch_at(int epoll, int operation, int fd, std::uint64_t id, std::uint32_t events) noexcept {
  epoll_event event{.events = events | EPOLLONESHOT, .data = {.u64 = id}};
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<Readiness>> Readiness::make(Host& host, UringEngine& engine, Ready ready, Whose whose) {
  std::unique_ptr<Readiness> made(new Readiness(engine, std::move(ready), std::move(whose)));
  made->waiting_.reserve(kMost);
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("epoll_create1", errno);
  made->more_ = UniqueFd(::eventfd(1, EFD_CLOEXEC));
  if (!made->more_) return system_error("eventfd", errno);
  if (!watch_at(epoll.get(), EPOLL_CTL_ADD, made->more_.get(), kMore, 0)) return shim::epoll_ctl_error(errno);
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

/// Reports one descriptor, and queues the rest behind the engine's other arrivals: ready_() may release the monitor,
/// and then another thread, which the engine wakes, reports the next one here.
void Readiness::readable() noexcept {
  if (left_ == 0) {
    look();
    left_ = std::min(kTurns, waiting_.size());
  }
  bool here = true;
  while (here && left_ != 0) {
    const Waiting next = take_next();
    --left_;
    here = left_ != 0 && !engine_.tell_again(watched_);
    if (left_ == 0 && !waiting_.empty()) (void)watch_again(more_.get(), kMore, EPOLLIN);  // it cannot fail
    ready_(next.id, next.events);
  }
}

/// Takes one of the host whose last turn was longest ago. Precondition: something waits.
Readiness::Waiting Readiness::take_next() noexcept {
  const auto first = [&] { return std::ranges::min_element(waiting_, {}, &Waiting::turn); };
  auto next = first();
  if (next->turn > looked_) {  // all hosts seen have had their turn
    look();
    next = first();
  }
  const Waiting taken = *next;
  waiting_.erase(next);
  ++turns_;
  for (Waiting& other : waiting_)
    if (other.whose == taken.whose) other.turn = turns_;
  return taken;
}

void Readiness::look() noexcept {
  looked_ = turns_;
  std::array<epoll_event, 64> found{};
  bool more = true;
  while (more) {  // each is found once: EPOLLONESHOT
    const std::size_t room = std::min(found.size(), kMost - waiting_.size());
    const int count = room == 0 ? 0 : ::epoll_wait(epoll_, found.data(), static_cast<int>(room), 0);
    for (int i = 0; i < count; ++i) line_up(found[static_cast<std::size_t>(i)]);
    more = count == static_cast<int>(found.size());
  }
}

void Readiness::line_up(const epoll_event& event) noexcept {
  const std::uint64_t id = event.data.u64;
  if (id == kMore) return;
  if (const auto same = std::ranges::find(waiting_, id, &Waiting::id); same != waiting_.end()) {
    same->events |= event.events;  // it was watched again before it was reported
    return;
  }
  const std::uint64_t whose = whose_(id);
  const auto before = std::ranges::find(waiting_, whose, &Waiting::whose);
  waiting_.push_back({id, event.events, whose, before != waiting_.end() ? before->turn : turns_});
}

}  // namespace lrpc::netrpc
