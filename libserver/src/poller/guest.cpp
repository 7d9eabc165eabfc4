// A poller as a guest: if callers run on all processors, it shares one with them (GuestPolicy).
#include <utility>

#include "poller.h"
#include "poller_team.h"

namespace lrpc::server {

/// Only the first poller, and only while no other one polls: its calls have to pay for all callers. Any thread.
bool Poller::may_be_guest(shim::Moment now) const noexcept {
  if (index_ != 0 || !guest_policy_.may_begin(now) || team_.others_poll(this)) return false;
  const std::uint64_t all = processors_.count_if([](std::uint16_t) { return true; });
  return all > 1 && all <= GuestPolicy::kMostProcessors && shim::is_processor(shim::current_processor());
}

/// Before a stint: tries to become a guest. False: not now.
bool Poller::begin_as_guest() noexcept {
  const shim::Moment now = shim::this_moment();
  if (!may_be_guest(now)) return false;
  guest_policy_.begin(now);
  has_to_pay_ = true;
  if (sit_down_at(next_host())) return true;
  (void)be_nobodys_guest();
  return false;
}

/// Within a stint, H14: a caller has come to the poller's processor, and no other one is free. False: not now.
bool Poller::stay_as_guest() noexcept {
  const shim::Moment now = shim::this_moment();
  const auto taken = [&](std::uint16_t processor) { return team_.taken(processor, this, now); };
  if ((!has_to_pay_ && !may_be_guest(now)) || processors_.any_but(taken)) return false;
  if (!std::exchange(has_to_pay_, true)) guest_policy_.begin(now);
  return change_seat_to(shim::current_processor());
}

std::uint16_t Poller::next_host() const noexcept {
  return processors_.next_after(host_, [&](std::uint16_t each) { return team_.poller_on(each, this); });
}

/// Moves to this processor as its guest. False: it is no processor, or the kernel refuses.
bool Poller::sit_down_at(std::uint16_t host) noexcept {
  host_ = host;
  guest_ = shim::is_processor(host) && shim::move_to_processor(host);
  if (guest_) guest_turns_.store(guest_turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return guest_;
}

/// The same within a stint. The hints change before the move: callers on the new host then sleep, and let the poller
/// in; those on the host that it leaves are asleep anyway, and are served after the move.
bool Poller::change_seat_to(std::uint16_t host) noexcept {
  policy_.go_on(shim::this_moment(), true);
  guest_ = true;
  say_all_polled(host);
  const bool moved = sit_down_at(host);
  const shim::Moment there = shim::this_moment();
  policy_.yielded(0, there);
  mark_ = there.ticks;  // this time does not count for the next call
  count_anew(there);
  return moved;
}

/// Between two scans of a stint in which it has been a guest; `calls`: those since the last time. Goes on to the next
/// host, or to a processor that has become free. There it has to pay, too: that one is free because callers share
/// another. False: the stint is over.
bool Poller::go_on_if_it_pays(std::uint64_t calls, shim::Moment now) noexcept {
  if (!guest_policy_.turn_over(calls, now)) return true;
  const std::uint64_t processors = team_.callers_sit_on(now) + (guest_ ? 0U : 1U);
  if (!guest_policy_.next_turn(processors, now)) return false;
  if (!guest_) return true;
  if (!take_seat()) return change_seat_to(next_host());
  guest_ = false;
  policy_.go_on(now, false);
  say_all_polled();
  return true;
}

/// The stint is over. Returns when the next one may begin, in ticks(); 0: at once. Lets the thread run on all
/// processors, so that it does not wait for its last host's when it is woken or ends.
std::uint64_t Poller::be_nobodys_guest() noexcept {
  if (!std::exchange(has_to_pay_, false)) return 0;
  guest_ = false;
  processors_.spread_this_thread();
  const shim::Moment now = shim::this_moment();
  guest_policy_.end(now);
  return now.after(GuestPolicy::kSettleUs);
}

/// Serves the host's callers just before the host gets its processor. At any other time a caller that is woken here
/// would take the processor at once, because the kernel owes it the time that it has slept; then no other caller would
/// find the poller polling.
void Poller::serve_host() {
  std::uint64_t last_hit = 0;
  serves_host_ = true;
  (void)scan(last_hit);
  serves_host_ = false;
}

}  // namespace lrpc::server
