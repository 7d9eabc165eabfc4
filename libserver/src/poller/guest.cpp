// A poller as a guest: where callers sit on all processors, it sits beside one of them (GuestPolicy).
#include <utility>

#include "poller.h"
#include "poller_team.h"

namespace lrpc::server {

bool Poller::may_be_guest(shim::Moment now) const noexcept {
  return index_ == 0 && guest_policy_.may_begin(now) && processors_.count_if([](std::uint16_t) { return true; }) > 1;
}

/// Before a stint. False: not now.
bool Poller::begin_as_guest() noexcept {
  const shim::Moment now = shim::this_moment();
  if (!may_be_guest(now)) return false;
  guest_policy_.begin(now);
  has_to_pay_ = true;
  return go_to_next_host();
}

/// Within one, H14: a caller has come to our processor, and there is no other to go to. False: not now.
bool Poller::stay_as_guest() noexcept {
  const shim::Moment now = shim::this_moment();
  const auto taken = [&](std::uint16_t processor) { return team_.taken(processor, this, now); };
  if ((!has_to_pay_ && !may_be_guest(now)) || processors_.any_but(taken)) return false;
  if (!std::exchange(has_to_pay_, true)) guest_policy_.begin(now);
  host_ = waiting_ = last_host_ = shim::current_processor();
  policy_.begin(now, true);
  say_all_polled();
  return true;
}

/// The callers are told before the move (H4): those who are there sleep, and let the poller in; those on the processor
/// that it leaves have been asleep anyway, and are served after it. False: there is no next host, or no way to it.
bool Poller::go_to_next_host() noexcept {
  const shim::Moment now = shim::this_moment();
  const std::uint16_t next =
      processors_.next_after(last_host_, [&](std::uint16_t each) { return team_.poller_on(each, this); });
  if (!shim::is_processor(next)) return false;
  host_ = waiting_ = last_host_ = next;
  if (!polling_) return shim::move_to_processor(next);
  policy_.begin(now, true);
  say_all_polled_at(next);
  const bool moved = shim::move_to_processor(next);
  const shim::Moment there = shim::this_moment();
  policy_.yielded(0, there);
  mark_ = there.ticks;  // what this took is not the next call's time
  count_anew(there);
  return moved;
}

/// Between two scans of a stint in which it has been a guest; `calls` since the last time. Goes on to the next host, or
/// to a processor that has become free. That one has to pay, too: it is free because callers share another. False: the
/// stint is over.
bool Poller::pays(std::uint64_t calls, shim::Moment now) noexcept {
  if (!guest_policy_.turn_over(calls, now)) return true;
  const std::uint64_t without_us = team_.callers_sit_on(now) + (is_guest() ? 0U : 1U);
  if (!guest_policy_.next_turn(without_us, now)) return false;
  if (!is_guest()) return true;
  if (!take_seat()) return go_to_next_host();
  host_ = waiting_ = kNoHost;
  policy_.begin(now);
  say_all_polled();
  return true;
}

/// The stint is over.
void Poller::be_nobodys_guest() noexcept {
  if (!std::exchange(has_to_pay_, false)) return;
  const shim::Moment now = shim::this_moment();
  host_ = waiting_ = kNoHost;
  guest_policy_.end(now);
  not_before_.store(now.after(GuestPolicy::kSettleUs), std::memory_order_relaxed);
}

/// Before the host gets its processor. Served at any other time, a caller that is woken here would take the processor
/// at once, for the kernel owes it the time that it has slept; and no other caller would find us polling.
void Poller::serve_host() {
  std::uint64_t last_hit = 0;
  waiting_ = kNoHost;
  (void)scan(last_hit);
  waiting_ = host_;
}

}  // namespace lrpc::server
