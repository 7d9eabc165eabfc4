// How a thread waits for its ring: it polls for a while (bypassing the ring if all datagrams come from one socket),
// then it sleeps.
#include <liburing.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "netrpc/devices/engine/uring_receiver.h"

namespace lrpc::netrpc {

namespace {
/// For how long a leader polls before it sleeps: about what sleeping and being woken on another processor costs.
constexpr Duration kPollingTime = std::chrono::microseconds(50);
/// A yield that takes this long has let another thread run.
constexpr Duration kHandedOver = std::chrono::microseconds(1);
/// A yield that takes this long has waited for another thread's time slice.
constexpr Duration kLongYield = std::chrono::microseconds(200);
/// The number of waits without polling after a long yield.
constexpr std::uint16_t kAfterLongYield = 1024;
}  // namespace

/// Looks once, without sleeping. What does not come from the direct socket (another socket, a kick, the timer) shows in
/// the ring's flags; only then is the kernel asked for it.
void UringReceiver::look() noexcept {
  if (direct_.active()) {
    direct_.look();
    if ((IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) == 0) return;
  }
  ::io_uring_get_events(&ring_);
}

/// The gates' idea (LRPC §3.4) for sockets: waking a thread costs more than the message. A polling thread yields each
/// time, so that a peer on the same processor can run; a message from another processor is seen as soon as it arrives.
/// After polling has failed twice in a row, the next waits sleep at once, more of them each time; so idleness costs
/// nothing.
bool UringReceiver::poll(std::optional<Time> until) noexcept {
  if (!direct_.active() || ::io_uring_sq_ready(&ring_) != 0) {
    ::io_uring_submit_and_get_events(&ring_);
  } else {
    look();  // our send may have let the peer run in our place, and the answer may be here
  }
  if (something_there()) {  // without reading the clock
    polling_.succeeded();
    return true;
  }
  const Host& host = *engine_.core_->host;
  Time now = host.now();
  const Time limit = until ? std::min(*until, now + kPollingTime) : now + kPollingTime;
  int turns = 0;  // in which others ran on this processor
  while (!something_there()) {
    if (now >= limit) {
      if (until && now >= *until) return true;  // an event is due: polling has not failed
      polling_.failed();
      return false;
    }
    const Time before = now;
    ::sched_yield();
    now = host.now();
    if (now - before > kHandedOver) ++turns;
    if (now - before > kLongYield) {
      polling_.postpone(kAfterLongYield);
      return false;
    }
    look();
  }
  // The processor went to the peer and came back, or was ours alone: nothing could be faster. But if the answer took
  // others several turns, our polling in between has delayed it.
  if (turns <= 1) {
    polling_.succeeded();
  } else {
    polling_.failed();
  }
  return true;
}

__kernel_timespec UringReceiver::span_until(Time until) const noexcept {
  const Duration left = std::max(until - engine_.core_->host->now(), Duration(0));
  return {.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
}

/// Outside the monitor.
void UringReceiver::sleep(std::optional<Time> until) noexcept {
  stop_direct();
  if (until && !set_timer(*until)) {
    __kernel_timespec time = span_until(*until);
    io_uring_cqe* first = nullptr;
    ::io_uring_submit_and_wait_timeout(&ring_, &first, 1, &time, nullptr);
  } else {
    ::io_uring_submit_and_wait(&ring_, 1);
  }
}

/// Inside the monitor, for a polling thread whose datagrams all come from one socket: ends this socket's receive in the
/// ring, so that the ring's flags report only what comes from elsewhere.
void UringReceiver::start_direct() noexcept {
  const EngineSocket* const socket = engine_.core_->find(last_);
  if (socket == nullptr || !direct_.start(last_, socket->fd)) {
    row_ = 0;
    return;
  }
  io_uring_sqe* const entry = next_entry();
  if (entry == nullptr) return direct_.stop();
  ::io_uring_prep_cancel64(entry, token(Kind::receive, last_), 0);
  entry->flags |= IOSQE_CQE_SKIP_SUCCESS;
  ::io_uring_sqe_set_data64(entry, token(Kind::cancel, last_));
}

/// Gives the socket back to the ring, which holds it by its table, or by a request that is submitted before the
/// duplicate is closed.
void UringReceiver::stop_direct() noexcept {
  if (!direct_.active()) return;
  row_ = 0;
  if (armed_[direct_.id().index] != direct_.id().generation) (void)arm_socket(direct_.id(), direct_.descriptor());
  if (std::exchange(by_descriptor_, false)) ::io_uring_submit(&ring_);
  direct_.stop();
}

/// Called after take_completions(): the ring's datagrams may be older.
void UringReceiver::take_direct() noexcept {
  UringEngine::Core& core = *engine_.core_;
  const DirectSocket::Found found = direct_.take();
  if (found.error != 0) return core.receive_failed(direct_.id(), found.error);
  if (found.cut) return core.lost(direct_.id());
  came_from(direct_.id());
  UringEngine::Core::add_one(core.counts.direct);
  core.arrived(direct_.id(), found.data, found.from, found.control);
}

}  // namespace lrpc::netrpc
