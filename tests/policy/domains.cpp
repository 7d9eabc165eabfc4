#include "domains.h"

#include <algorithm>

namespace lrpc::simulated {

using server::EStackPolicy;
using server::GuestPolicy;
using shim::CallerPolicy;
using shim::EStackHint;
using shim::PolledHint;

namespace {

/// What a call takes that is rung, claimed, executed and returned, on either side.
constexpr std::uint64_t kStep = 1;
/// What an E-stack takes from a call's return until it sleeps: a call that comes before finds it awake.
constexpr std::uint64_t kPark = us(1);

}  // namespace

AStack& Domain::add_caller(const Pattern& pattern, std::uint64_t processors) {
  AStack& astack = *astacks_.emplace_back(std::make_unique<AStack>());
  if (poller_ == nullptr && may_poll())
    poller_ = &machine_.start(mask_, [this, pattern](Thread& me) { return poll_for_ever(me, pattern); });
  astack.estack = &machine_.start(mask_, [&](Thread& me) { return serve_for_ever(me, astack, pattern); });
  astack.caller = &machine_.start(processors, [&](Thread& me) { return call_for_ever(me, astack, pattern); });
  return astack;
}

Calls Domain::calls() const {
  Calls all;
  for (const auto& astack : astacks_) {
    all.count += astack->calls.count;
    all.time += astack->calls.time;
    all.longest = std::max(all.longest, astack->calls.longest);
  }
  return all;
}

std::uint64_t Domain::switches() const {
  std::uint64_t all = stints_;
  for (const auto& astack : astacks_) all += astack->moves;
  return all;
}

/// transfer.cpp and call.h.
Life Domain::call_for_ever(Thread& me, AStack& astack, Pattern pattern) {
  for (;;) {
    if (pattern.think > 0) co_await me.work(pattern.think);
    if (pattern.sleep > 0) co_await me.sleep(pattern.sleep);
    const std::uint64_t began = machine_.now();
    co_await me.work(kStep);
    const bool may_yield = gate_ != Gate::sleep;
    CallerPolicy::Way way = CallerPolicy::Way::exchange;
    if (!pattern.polls && !astack.policy.trusts(astack.polled.bits())) {
      way = astack.policy.choose(
          {.polled = astack.polled, .estack = astack.attached, .processor = me.processor(), .now = machine_.moment()},
          may_yield);
    }
    if (way == CallerPolicy::Way::exchange && !pattern.polls &&
        astack.policy.offer_due(me.ran() / kPerUs, machine_.moment())) {
      const std::uint64_t offered = machine_.now();
      co_await me.yield();
      const shim::Moment ended = machine_.moment();
      astack.policy.offered(ended.since(offered), me.ran() / kPerUs, ended);
    }
    astack.caller_processor = me.processor();
    astack.caller_yields = way != CallerPolicy::Way::exchange && way != CallerPolicy::Way::lend && may_yield &&
                           astack.policy.would_yield(machine_.moment());
    ++astack.called;
    if (pattern.polls) wake_estack(me, astack);
    if (way == CallerPolicy::Way::exchange) {
      for (std::uint64_t n = 0; n < us(CallerPolicy::kExchangeMicroseconds) && astack.returned != astack.called; ++n)
        co_await me.work(1);
      if (astack.returned != astack.called) astack.policy.exchange_missed(machine_.moment());
    }
    if (astack.returned != astack.called && way != CallerPolicy::Way::lend) wake_estack(me, astack);
    if (way == CallerPolicy::Way::yield) {
      const std::uint64_t yields_from = machine_.now();
      do {
        co_await me.yield();
      } while (astack.returned != astack.called && machine_.now() - yields_from < us(CallerPolicy::kYieldMicroseconds));
      const shim::Moment ended = machine_.moment();
      astack.policy.yielded(astack.returned == astack.called, ended.since(yields_from), ended);
    }
    while (astack.returned != astack.called) {
      astack.caller_sleeps = true;
      co_await me.wait();
    }
    astack.caller_sleeps = false;
    const std::uint64_t took = machine_.now() - began;
    ++astack.calls.count;
    astack.calls.time += took;
    astack.calls.longest = std::max(astack.calls.longest, took);
  }
}

void Domain::wake_estack(Thread& me, AStack& astack) {
  if (std::exchange(astack.parked, false)) machine_.wake(me, *astack.estack);
}

void Domain::finish(Thread& me, AStack& astack) {
  astack.claimed = false;
  astack.returned = astack.called;
  if (std::exchange(astack.caller_sleeps, false)) machine_.wake(me, *astack.caller);
}

/// estack.cpp; but it leaves its caller alone as soon as the A-stack is hot, not only when the caller has been told so.
Life Domain::serve_for_ever(Thread& me, AStack& astack, Pattern pattern) {
  EStackPolicy& policy = astack.estack_policy;
  const bool may_yield = gate_ == Gate::adaptive || gate_ == Gate::handoff;
  for (;;) {
    if (!astack.waits_for_server()) {
      if (may_yield && !astack.hot && policy.hands_over(astack.caller_processor, astack.caller_yields)) {
        policy.gave_way();
        for (int i = 0; i < EStackPolicy::kYields && !astack.waits_for_server(); ++i) co_await me.yield();
        if (astack.waits_for_server()) continue;
      }
      const std::uint64_t parks = machine_.now();
      co_await me.work(kPark);
      if (!astack.waits_for_server()) {
        astack.parked = true;
        co_await me.wait();
      }
      policy.parked(machine_.moment().since(parks));
      continue;
    }
    astack.claimed = true;
    co_await me.work(kStep + pattern.procedure);
    finish(me, astack);
    const shim::Moment now = machine_.moment();
    const bool hot = policy.served(now.since(astack.last_call), kWindow / kPerUs);
    astack.last_call = now.ticks;
    if (may_poll()) {
      if (hot) note_caller(astack);
      if (!astack.hot && (hot || gate_ == Gate::exchange) && now.ticks >= not_before_ &&
          (seats() != 0 || may_be_guest())) {
        astack.hot = offered_ = true;
        machine_.wake(me, *poller_);
      }
    }
    if (pattern.offers && policy.yield_due(now)) {
      ++astack.yields;
      co_await me.yield();
      const shim::Moment ended = machine_.moment();
      policy.yielded(ended.since(now.ticks), ended);
    } else if (astack.polled.guest() && astack.polled.processor() == me.processor()) {
      co_await me.yield();
    }
    if (!may_yield || astack.hot) continue;
    const std::uint16_t caller = astack.caller_processor;
    policy.called_from(caller);
    switch (policy.move(caller, astack.caller_yields, now)) {
      case EStackPolicy::Move::stay: break;
      case EStackPolicy::Move::unbind:
        policy.unbound(now);
        astack.attached = EStackHint::anywhere();
        co_await me.keep_to(mask_);
        break;
      case EStackPolicy::Move::bind:
        if ((mask_ >> caller & 1) == 0) break;
        policy.bound_to(caller, now);
        astack.attached = EStackHint::beside(caller);
        ++astack.moves;
        co_await me.keep_to(std::uint64_t{1} << caller);
        break;
    }
  }
}

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

void Domain::say_polled_at(std::uint16_t seat) {
  const PolledHint hint(seat, poller_policy_.stint(), poller_policy_.turn());
  say_polled(guest_ ? hint.as_guest() : hint);
}

void Domain::say_polled(PolledHint hint) {
  for (const auto& astack : astacks_) {
    if (astack->hot) astack->polled = hint;
  }
}

std::uint16_t Domain::next_host(std::uint16_t host) const {
  do host = static_cast<std::uint16_t>((host + 1U) % machine_.processors());
  while ((mask_ >> host & 1) == 0);
  return host;
}

/// poller.cpp, guest.cpp.
Life Domain::poll_for_ever(Thread& me, Pattern pattern) {
  std::uint16_t seat = 0;
  for (;;) {
    while (!std::exchange(offered_, false)) co_await me.wait();
    guest_ = seats() == 0;
    bool pays = guest_;  // has to
    if (machine_.now() >= not_before_ && (!guest_ || may_be_guest())) {
      if (guest_) guest_policy_.begin(machine_.moment());
      co_await me.keep_to(guest_ ? std::uint64_t{1} << next_host(seat) : seats());
      seat = me.processor();
      poller_policy_.begin(machine_.moment(), guest_);
      ++stints_;
      say_polled_at(seat);
      std::uint64_t looked = machine_.now();
      std::uint64_t switched_out = me.involuntary();
      std::uint64_t hits_looked = hits_;
      for (std::uint64_t last_hit = looked;
           (guest_ || machine_.now() - last_hit < kWindow) && !poller_policy_.evicted();) {
        co_await me.work(1);
        const bool hosts_turn = guest_ && poller_policy_.yield_due(machine_.moment());
        for (const auto& each : astacks_) {
          AStack& astack = *each;
          if (!astack.hot || !astack.waits_for_server()) continue;
          if (guest_ && !hosts_turn && astack.caller_processor == seat) continue;
          astack.claimed = true;
          if (pattern.procedure > 0) co_await me.work(pattern.procedure);
          finish(me, astack);
          last_hit = machine_.now();
          ++hits_;
          note_caller(astack);
          if (guest_ || astack.caller_processor != me.processor()) continue;
          if (const std::uint64_t other = seats(); other != 0 && poller_policy_.may_step_aside(machine_.moment())) {
            co_await me.keep_to(other);
          } else if (other == 0 && (pays || may_be_guest())) {
            guest_ = true;
            if (!std::exchange(pays, true)) guest_policy_.begin(machine_.moment());
            poller_policy_.go_on(machine_.moment(), guest_);
            say_polled_at(seat);
          } else {
            astack.polled = PolledHint();
            astack.hot = false;
          }
        }
        const shim::Moment now = machine_.moment();
        if (me.involuntary() != switched_out) poller_policy_.others_had(now.since(looked), now);
        switched_out = me.involuntary();
        if (hosts_turn || (!guest_ && poller_policy_.yield_due(now))) {
          co_await me.yield();
          const shim::Moment after = machine_.moment();
          poller_policy_.yielded(after.since(now.ticks), after);
          if (poller_policy_.turns(hits_)) say_polled_at(seat);
        }
        const std::uint64_t calls = hits_ - std::exchange(hits_looked, hits_);
        if (pays && guest_policy_.turn_over(calls, machine_.moment())) {
          const std::uint64_t processors = static_cast<unsigned>(std::popcount(taken())) + (guest_ ? 0U : 1U);
          if (!guest_policy_.next_turn(processors, machine_.moment())) break;
          if (const std::uint64_t free = seats(); guest_ && free != 0) {
            guest_ = false;
            poller_policy_.go_on(machine_.moment(), guest_);
            co_await me.keep_to(free);
          } else if (guest_) {
            seat = next_host(seat);
            poller_policy_.go_on(machine_.moment(), guest_);
            say_polled_at(seat);  // before it is there
            co_await me.keep_to(std::uint64_t{1} << seat);
          }
          poller_policy_.yielded(0, machine_.moment());
        }
        looked = machine_.now();
        if (std::exchange(offered_, false) || seat != me.processor()) {
          seat = me.processor();
          say_polled_at(seat);
        }
      }
      if (const std::uint64_t next = poller_policy_.end(machine_.moment()); next != 0) not_before_ = next;
      if (pays) {
        guest_policy_.end(machine_.moment());
        not_before_ = std::max(not_before_, machine_.moment().after(GuestPolicy::kSettleUs));
      }
    }
    say_polled(PolledHint());
    // The last look is the E-stacks': a call that was rung for us finds them.
    for (const auto& astack : astacks_) {
      if (std::exchange(astack->hot, false) && astack->called != astack->returned) wake_estack(me, *astack);
    }
  }
}

Life hog(Thread& me) {
  for (;;) co_await me.work(us(1'000'000));
}

Life third_party(Thread& me, Machine& machine, std::uint64_t period, std::uint64_t work, Calls& done) {
  for (std::uint64_t due = machine.now() + period;; due = std::max(due + period, machine.now())) {
    if (due > machine.now()) co_await me.sleep(due - machine.now());
    co_await me.work(work);
    const std::uint64_t took = machine.now() - due;
    ++done.count;
    done.time += took;
    done.longest = std::max(done.longest, took);
  }
}

}  // namespace lrpc::simulated
