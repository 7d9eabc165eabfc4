// The event loop on io_uring: one IORING_OP_POLL_ADD a watch, armed afresh after each event.
//
// One-shot and not multishot: a poll that is added looks at the descriptor at once, so a handler that leaves something
// unread is called again, just as with level-triggered epoll. Arming costs no system call of its own: it is submitted
// by the io_uring_enter that waits. The ring is restricted to adding and removing polls before it is enabled.
#include <liburing.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "event_loop.h"
#include "lrpc/detail/shim/system/restricted_ring.h"
#include "no_memory.h"

namespace lrpc::nameserver {
namespace {

constexpr unsigned kSubmissions = 256;
constexpr unsigned kCompletions = 4096;
constexpr std::uint64_t kNoToken = 0;  ///< Completions that nobody waits for: those of removals.

class UringLoop final : public EventLoop {
 public:
  ~UringLoop() override {
    if (!opened_) return;
    const std::lock_guard lock(shim::ring_addresses());
    ::io_uring_queue_exit(&ring_);
  }

  Status open() {
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE;
    parameters.cq_entries = kCompletions;
    const int result = [&] {
      const std::lock_guard lock(shim::ring_addresses());
      return ::io_uring_queue_init_params(kSubmissions, &ring_, &parameters);
    }();
    if (result < 0) return refused("io_uring_setup", result);
    opened_ = true;
    if ((parameters.features & IORING_FEAT_EXT_ARG) == 0) return refused("waiting with a timeout", -EOPNOTSUPP);

    constexpr std::array<std::uint8_t, 2> kOperations{IORING_OP_POLL_ADD, IORING_OP_POLL_REMOVE};
    if (const int err = shim::restrict_ring(ring_.ring_fd, {.operations = kOperations}); err != 0)
      return refused("restricting the ring", -err);
    if (const int err = shim::enable_ring(ring_.ring_fd); err != 0) return refused("enabling the ring", -err);
    return make_stop_event();
  }
  std::string_view name() const noexcept override { return "io_uring"; }

 protected:
  Status arm(WatchId id, Watch& watch) override {
    // For one more poll, and for all that the other polls may still submit: a removal, or a new poll and its removal.
    make_room(unsent_, unsent_.size() + 2 * armed_.size() + 2);
    armed_.emplace(last_token_ + 1, id);
    watch.token = ++last_token_;
    watch.heard = false;
    unsent_.push_back({watch.token, id});
    return {};
  }
  Status rearm(WatchId id, Watch& watch) override {
    if (watch.heard) return {};  // handled() will arm it
    const std::uint64_t before = watch.token;
    auto armed = arm(id, watch);
    remove_poll(before);
    return armed;
  }
  void disarm(WatchId, Watch& watch) noexcept override {
    if (watch.heard) armed_.erase(watch.token);
    remove_poll(watch.token);
  }
  /// Arms it with the token of the poll that has completed, which needs no memory.
  void handled(WatchId id, Watch& watch) noexcept override {
    if (watch.heard) unsent_.push_back({watch.token, id});
    watch.heard = false;
  }

  Status wait(std::optional<Clock::time_point> until, std::vector<Event>& events) override {
    if (auto sent = send_unsent(); !sent) return sent;
    if (!unsent_.empty()) until = Clock::now();  // what the kernel has no memory for now is sent again
    io_uring_cqe* first = nullptr;
    int result = 0;
    if (until) {
      const std::int64_t left = std::max(std::chrono::nanoseconds(*until - Clock::now()).count(), std::int64_t{0});
      __kernel_timespec time{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
      result = ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
    } else {
      result = ::io_uring_submit_and_wait(&ring_, 1);
    }
    if (result < 0 && result != -ETIME && !come_back(result)) return system_error("io_uring_enter", -result);
    take_completions(events);
    return {};
  }

  void quiesce() noexcept override {
    // Polls that are not removed would keep the files open until the kernel cleans the ring up, some time later.
    for (const auto& [token, id] : armed_) unsent_.push_back({token, 0});
    armed_.clear();
    while (!unsent_.empty() || in_kernel_ > 0) {
      if (!send_unsent()) return;
      if (const int result = ::io_uring_submit_and_wait(&ring_, 1); result < 0 && !come_back(result)) return;
      std::vector<Event> none;
      take_completions(none);
    }
  }

 private:
  struct Submission {
    std::uint64_t token = 0;
    WatchId id = 0;  ///< 0: remove the poll.
  };

  /// The poll in the kernel holds a reference to the file: without its removal the peer would never see the socket
  /// close.
  void remove_poll(std::uint64_t token) noexcept {
    if (armed_.erase(token) != 0) unsent_.push_back({token, 0});
  }

  static Error refused(std::string_view what, int result) {
    return {Errc::not_supported, "io_uring is not available: " + system_error(what, -result).text};
  }

  /// Interrupted, or completions have to be taken before more can be done.
  static bool come_back(int result) noexcept { return result == -EINTR || result == -EBUSY || result == -EAGAIN; }

  Status send_unsent() {
    std::size_t sent = 0;
    for (; sent < unsent_.size(); ++sent) {
      const Submission& submission = unsent_[sent];
      if (submission.id != 0 && !armed_.contains(submission.token)) continue;  // disarmed before it was ever sent
      io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
      if (entry == nullptr) {
        const int result = ::io_uring_submit(&ring_);
        if (result < 0 && !come_back(result)) return system_error("io_uring_enter", -result);
        entry = ::io_uring_get_sqe(&ring_);
        if (entry == nullptr) break;  // completions have to be taken first; the rest goes next time
      }
      if (submission.id == 0) {
        ::io_uring_prep_poll_remove(entry, submission.token);
        ::io_uring_sqe_set_data64(entry, kNoToken);
      } else {
        const Watch& watch = *find(submission.id);
        unsigned mask = POLLRDHUP;
        if (watch.interest.readable) mask |= POLLIN;
        if (watch.interest.writable) mask |= POLLOUT;
        ::io_uring_prep_poll_add(entry, watch.fd, mask);
        ::io_uring_sqe_set_data64(entry, submission.token);
      }
      ++in_kernel_;
    }
    unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
    return {};
  }

  /// Every submission completes exactly once: polls by readiness, by an error or by their removal.
  void take_completions(std::vector<Event>& events) {
    io_uring_cqe* entry = nullptr;
    // In quiesce(), where armed_ is empty, all events are dropped, so they need no room.
    while ((armed_.empty() || events.size() < events.capacity()) && ::io_uring_peek_cqe(&ring_, &entry) == 0) {
      const std::uint64_t token = ::io_uring_cqe_get_data64(entry);
      const int result = entry->res;
      ::io_uring_cqe_seen(&ring_, entry);
      --in_kernel_;
      const auto found = armed_.find(token);
      if (found == armed_.end()) continue;  // a removal, or what was removed
      const WatchId id = found->second;
      find(id)->heard = true;
      const auto mask = result < 0 ? unsigned{POLLERR} : static_cast<unsigned>(result);
      events.push_back({id,
                        {.readable = (mask & POLLIN) != 0,
                         .writable = (mask & POLLOUT) != 0,
                         .hung_up = (mask & (POLLHUP | POLLERR | POLLRDHUP | POLLNVAL)) != 0}});
    }
  }

  io_uring ring_{};
  bool opened_ = false;
  std::unordered_map<std::uint64_t, WatchId> armed_;  ///< By token: polls that are, or are to be, in the kernel.
  std::vector<Submission> unsent_;
  std::uint64_t last_token_ = kNoToken;
  std::size_t in_kernel_ = 0;
};

}  // namespace

Result<std::unique_ptr<EventLoop>> make_uring_loop() {
  auto loop = std::make_unique<UringLoop>();
  if (auto opened = loop->open(); !opened) return opened.error();
  return std::unique_ptr<EventLoop>(std::move(loop));
}

}  // namespace lrpc::nameserver
