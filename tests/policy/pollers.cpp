// A domain's poller: the mechanism of poller.cpp, hot_set.cpp and guest.cpp around the policies.
#include <algorithm>
#include <utility>

#include "domains.h"

namespace lrpc::simulated {

using server::CallerProcessors;
using server::GuestPolicy;
using shim::PolledHint;

namespace {

// As in poller.cpp and hot_set.cpp.
constexpr std::uint64_t kGapUs = 50;
constexpr std::uint64_t kSlow = us(20);
constexpr std::uint64_t kSlowFactor = 100;
constexpr std::uint64_t kCrowdedBackOffUs = 10'000;
constexpr std::uint64_t kColdWindows = 64;

}  // namespace

std::uint64_t Domain::seats() const {
  std::uint64_t seats = 0;
  for (unsigned i = 0; i < machine_.processors(); ++i) {
    if ((mask_ >> i & 1) != 0 && !callers_.on(static_cast<std::uint16_t>(i), machine_.moment()))
      seats |= std::uint64_t{1} << i;
  }
  return seats;
}

void Domain::note_caller(AStack& astack) {
  callers_.called_from(&astack, astack.caller_processor, std::exchange(astack.called_from, astack.caller_processor),
                       machine_.moment());
}

/// As PollerTeam.
bool Domain::wants_offer(const AStack& astack) const {
  if (machine_.now() < astack.not_before) return false;
  return grant_.most == 0 || polls_ || (takes_offers() && (seats() != 0 || may_be_guest()));
}

void Domain::say_polled_at(std::uint16_t seat) {
  const PolledHint hint(seat, poller_policy_.stint(), poller_policy_.turn());
  for (const auto& astack : astacks_) {
    if (astack->hot) astack->polled = guest_ ? hint.as_guest() : hint;
  }
}

std::uint16_t Domain::next_host(std::uint16_t host) const {
  do host = static_cast<std::uint16_t>((host + 1U) % machine_.processors());
  while ((mask_ >> host & 1) == 0);
  return host;
}

void Domain::count_anew(const Thread& me) {
  counted_ = machine_.now();
  counted_ran_ = me.ran();
}

void Domain::note_gap(const Thread& me, std::uint64_t looked) {
  const shim::Moment now = machine_.moment();
  if (now.since(looked) <= kGapUs) return;
  const std::uint64_t passed = now.since(counted_);
  const std::uint64_t had = (me.ran() - counted_ran_) / kPerUs;
  count_anew(me);
  if (passed > had && !offered_) poller_policy_.others_had(std::min(now.since(looked), passed - had), now);
}

bool Domain::too_slow(const Thread& me, AStack& astack, std::uint64_t took) {
  if (took <= kSlow) {
    astack.slow = 0;
    return false;
  }
  if (me.involuntary() != std::exchange(slow_looked_, me.involuntary()) || ++astack.slow < 2) return false;
  astack.slow = 0;
  astack.not_before = machine_.now() + std::max(kSlowFactor * took, us(kCrowdedBackOffUs));
  return true;
}

void Domain::drop(AStack& astack) {
  astack.polled = PolledHint();
  astack.hot = false;
}

void Domain::drop_cold() {
  for (const auto& astack : astacks_) {
    if (astack->hot && !astack->waits_for_server() && machine_.now() - astack->last_hit >= kColdWindows * kWindow)
      drop(*astack);
  }
}

void Domain::end_stint() {
  const shim::Moment now = machine_.moment();
  polls_ = false;
  grant_.counters.polling = false;
  if (poller_policy_.evicted()) ++grant_.counters.evictions;
  if (const std::uint64_t next = poller_policy_.end(now); next != 0) not_before_ = next;
  if (!std::exchange(has_to_pay_, false)) return;
  guest_ = false;
  guest_policy_.end(now);
  not_before_ = std::max(not_before_, now.after(GuestPolicy::kSettleUs));
}

/// The E-stacks take the last look: calls that were rung for the poller are left to them.
void Domain::cool_down(Thread& me) {
  for (const auto& astack : astacks_) {
    if (!astack->hot) continue;
    drop(*astack);
    if (astack->called != astack->returned) wake_estack(me, *astack);
  }
}

Life Domain::poll_for_ever(Thread& me) {
  std::uint16_t seat = 0;
  for (;;) {
    while (!std::exchange(offered_, false)) co_await me.wait();
    refresh();
    guest_ = has_to_pay_ = seats() == 0;
    if (!takes_offers() || (guest_ && !may_be_guest())) {
      if (takes_offers()) not_before_ = machine_.moment().after(CallerProcessors::kRecentUs);
      guest_ = has_to_pay_ = false;
      cool_down(me);
      continue;
    }
    if (guest_) guest_policy_.begin(machine_.moment());
    co_await me.keep_to(guest_ ? std::uint64_t{1} << next_host(seat) : seats());
    seat = me.processor();
    poller_policy_.begin(machine_.moment(), guest_);
    ++stints_;
    polls_ = true;
    grant_.counters.polling = true;
    grant_.counters.wants_poller = false;
    say_polled_at(seat);
    count_anew(me);
    std::uint64_t looked = machine_.now();
    std::uint64_t hits_looked = hits_;
    for (std::uint64_t last_hit = looked;
         grant_.most != 0 && (guest_ || machine_.now() - last_hit < kWindow) && !poller_policy_.evicted();) {
      co_await me.work(1);
      const bool hosts_turn = guest_ && poller_policy_.yield_due(machine_.moment());
      for (const auto& each : astacks_) {
        AStack& astack = *each;
        if (!astack.hot || !astack.waits_for_server()) continue;
        if (guest_ && !hosts_turn && astack.caller_processor == seat) continue;
        astack.claimed = true;
        const std::uint64_t began = machine_.now();
        if (const std::uint64_t takes = astack.pattern.takes(astack.called); takes > 0) co_await me.work(takes);
        finish(me, astack);
        astack.last_hit = last_hit = machine_.now();
        ++hits_;
        note_caller(astack);
        if (too_slow(me, astack, last_hit - began)) {
          drop(astack);
          continue;
        }
        if (guest_ || astack.caller_processor != me.processor()) continue;
        if (const std::uint64_t other = seats(); other != 0 && poller_policy_.may_step_aside(machine_.moment())) {
          co_await me.keep_to(other);
          say_polled_at(seat = me.processor());
        } else if (other == 0 && (has_to_pay_ || may_be_guest())) {
          guest_ = true;
          if (!std::exchange(has_to_pay_, true)) guest_policy_.begin(machine_.moment());
          poller_policy_.go_on(machine_.moment(), guest_);
          say_polled_at(seat);
        } else {
          astack.not_before = machine_.moment().after(kCrowdedBackOffUs);
          drop(astack);
        }
      }
      note_gap(me, looked);
      if (hosts_turn || (!guest_ && poller_policy_.yield_due(machine_.moment()))) {
        const std::uint64_t yields = machine_.now();
        co_await me.yield();
        const shim::Moment after = machine_.moment();
        poller_policy_.yielded(after.since(yields), after);
        if (poller_policy_.turns(hits_)) say_polled_at(seat);
        if (after.since(yields) >= 2) {
          slow_looked_ = me.involuntary();
          count_anew(me);
        }
      }
      grant_.tell_hits(hits_ - std::exchange(told_hits_, hits_));
      refresh();
      const std::uint64_t calls = hits_ - std::exchange(hits_looked, hits_);
      if (has_to_pay_ && guest_policy_.turn_over(calls, machine_.moment())) {
        const std::uint64_t processors = static_cast<unsigned>(std::popcount(taken())) + (guest_ ? 0U : 1U);
        if (!guest_policy_.next_turn(processors, machine_.moment())) break;
        if (const std::uint64_t free = seats(); guest_ && free != 0) {
          guest_ = false;
          poller_policy_.go_on(machine_.moment(), guest_);
          co_await me.keep_to(free);
        } else if (guest_) {
          seat = next_host(seat);
          poller_policy_.go_on(machine_.moment(), guest_);
          say_polled_at(seat);  // before it arrives there
          co_await me.keep_to(std::uint64_t{1} << seat);
        }
        poller_policy_.yielded(0, machine_.moment());
        count_anew(me);
      }
      if (guest_ && seat != me.processor()) break;  // it was moved from outside
      const bool moved = seat != me.processor();
      if (!guest_ && (moved || (callers_.on(seat, machine_.moment()) &&
                                poller_policy_.may_step_aside(machine_.moment()) && seats() != 0))) {
        const std::uint64_t other = seats();
        if (other == 0) break;
        co_await me.keep_to(other);
        say_polled_at(seat = me.processor());
      }
      looked = machine_.now();
      if (std::exchange(offered_, false)) say_polled_at(seat);
      drop_cold();
    }
    const bool was_guest = has_to_pay_;
    end_stint();
    if (was_guest) co_await me.keep_to(mask_);
    cool_down(me);
  }
}

}  // namespace lrpc::simulated
