// The event loop on epoll: for kernels and sandboxes that refuse io_uring.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "event_loop.h"
#include "lrpc/detail/shim/system/lack.h"

namespace lrpc::nameserver {
namespace {

class EpollLoop final : public EventLoop {
 public:
  Status open() {
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_) return system_error("epoll_create1", errno);
    return make_stop_event();
  }
  std::string_view name() const noexcept override { return "epoll"; }

 protected:
  Status arm(WatchId id, Watch& watch) override { return control(EPOLL_CTL_ADD, id, watch); }
  Status rearm(WatchId id, Watch& watch) override { return control(EPOLL_CTL_MOD, id, watch); }
  void disarm(WatchId /*id*/, Watch& watch) noexcept override {
    // It fails only if the descriptor is not open, and then no event comes from it.
    epoll_event ignored{};
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.fd, &ignored);
  }

  Status wait(std::optional<Clock::time_point> until, std::vector<Event>& events) override {
    int wait_ms = -1;
    if (until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
    }
    // Watches that wait for their turn are still ready, and would fill a short list each time.
    std::array<epoll_event, 1024> ready;
    const std::size_t most = std::min(ready.size(), events.capacity() - events.size());
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(most), wait_ms);
    if (count < 0) return errno == EINTR ? Status() : system_error("epoll_wait", errno);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const std::uint32_t mask = ready[i].events;
      events.push_back({ready[i].data.u64,
                        {.readable = (mask & EPOLLIN) != 0,
                         .writable = (mask & EPOLLOUT) != 0,
                         .hung_up = (mask & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) != 0}});
    }
    return {};
  }

 private:
  Status control(int operation, WatchId id, const Watch& watch) {
    epoll_event event{};
    event.events = EPOLLRDHUP;
    if (watch.interest.readable) event.events |= EPOLLIN;
    if (watch.interest.writable) event.events |= EPOLLOUT;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), operation, watch.fd, &event) != 0) return shim::epoll_ctl_error(errno);
    return {};
  }

  UniqueFd epoll_;
};

}  // namespace

Result<std::unique_ptr<EventLoop>> make_epoll_loop() {
  auto loop = std::make_unique<EpollLoop>();
  if (auto opened = loop->open(); !opened) return opened.error();
  return std::unique_ptr<EventLoop>(std::move(loop));
}

}  // namespace lrpc::nameserver
