// Callers and E-stacks. The poller is in pollers.cpp.
#include "domains.h"

#include <algorithm>
#include <utility>

namespace lrpc::simulated {

using server::EStackPolicy;
using shim::CallerPolicy;
using shim::EStackHint;

namespace {

/// The time to ring a call, or to claim and return it.
constexpr std::uint64_t kStep = 1;
/// The time from an E-stack's last look until it sleeps: a call that comes before finds it awake.
constexpr std::uint64_t kPark = us(1);
/// The interval at which DomainProcessors looks again.
constexpr std::uint64_t kRefreshUs = 10'000;

std::uint64_t about(std::uint64_t time, std::minstd_rand& random) {
  return std::uniform_int_distribution<std::uint64_t>(time / 2, time + time / 2)(random);
}

}  // namespace

Domain::Domain(Machine& machine, Gate gate, std::uint64_t processors, Surroundings surroundings)
    : machine_(machine), gate_(gate), surroundings_(surroundings), allowed_(processors), mask_(processors) {
  grant_.processor_time = [this] {
    std::uint64_t ran = poller_ == nullptr ? 0 : poller_->ran();
    for (const auto& astack : astacks_) ran += astack->estack->ran();
    return ran;
  };
  if (surroundings_.lrpcd != nullptr) surroundings_.lrpcd->add(grant_);
}

AStack& Domain::add_caller(const Pattern& pattern, std::uint64_t processors) {
  AStack& astack = *astacks_.emplace_back(std::make_unique<AStack>(pattern, machine_.now()));
  const Thread::Kind server{.group = surroundings_.server};
  if (poller_ == nullptr && may_poll())
    poller_ = &machine_.start(
        allowed_, [this](Thread& me) { return poll_for_ever(me); }, server);
  astack.estack = &machine_.start(
      allowed_, [&](Thread& me) { return serve_for_ever(me, astack); }, server);
  const std::uint64_t seed = astacks_.size();
  astack.caller = &machine_.start(processors, [&](Thread& me) { return call_for_ever(me, astack, seed); },
                                  {.group = surroundings_.clients, .realtime = pattern.realtime});
  return astack;
}

Calls Domain::calls() const {
  Calls all;
  for (const auto& astack : astacks_) all += astack->calls;
  return all;
}

std::uint64_t Domain::switches() const {
  std::uint64_t all = stints_;
  for (const auto& astack : astacks_) all += astack->moves;
  return all;
}

void Domain::confine_server(std::uint64_t processors) {
  allowed_ = processors;
  if (poller_ != nullptr) machine_.confine(*poller_, processors);
  for (const auto& astack : astacks_) machine_.confine(*astack->estack, processors);
}

void Domain::confine_callers(std::uint64_t processors) {
  for (const auto& astack : astacks_) machine_.confine(*astack->caller, processors);
}

/// As DomainProcessors.
void Domain::refresh() {
  if (machine_.moment().since(looked_) < kRefreshUs) return;
  looked_ = machine_.now();
  mask_ = allowed_ & machine_.online();
  if (mask_ == 0) mask_ = machine_.online();
}

/// As transfer.cpp and call.h.
Life Domain::call_for_ever(Thread& me, AStack& astack, std::uint64_t seed) {
  const Pattern pattern = astack.pattern;
  std::minstd_rand random(static_cast<std::uint32_t>(seed));
  for (;;) {
    if (pattern.think > 0) co_await me.work(pattern.varies ? about(pattern.think, random) : pattern.think);
    if (pattern.sleep > 0) co_await me.sleep(pattern.varies ? about(pattern.sleep, random) : pattern.sleep);
    const std::uint64_t began = astack.calls_since = machine_.now();
    co_await me.work(kStep);
    const bool may_yield = gate_ != Gate::sleep && !me.realtime();
    CallerPolicy::Way way = CallerPolicy::Way::exchange;
    if (!pattern.polls && !astack.policy.trusts(astack.polled.bits())) {
      way = astack.policy.choose(
          {.polled = astack.polled, .estack = astack.attached, .processor = me.processor(), .now = machine_.moment()},
          may_yield);
    }
    if (way == CallerPolicy::Way::exchange && !pattern.polls && !me.realtime() &&
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
    const std::uint64_t lent = machine_.now();
    while (astack.returned != astack.called) {
      astack.caller_sleeps = true;
      if (way != CallerPolicy::Way::lend) {
        co_await me.wait();
        continue;
      }
      co_await me.wait_for(us(CallerPolicy::kLendMicroseconds));
      if (astack.returned == astack.called || machine_.now() - lent < us(CallerPolicy::kLendMicroseconds)) continue;
      way = CallerPolicy::Way::sleep;
      astack.policy.loan_missed(machine_.moment());
      wake_estack(me, astack);
    }
    astack.caller_sleeps = false;
    const std::uint64_t took = machine_.now() - began;
    astack.calls_since = 0;
    astack.calls.note(took);
    astack.history.note(began, took);
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

/// As estack.cpp, with one difference: it ignores where its caller is as soon as the A-stack is hot, not only once the
/// caller has seen the hint.
Life Domain::serve_for_ever(Thread& me, AStack& astack) {
  EStackPolicy& policy = astack.estack_policy;
  for (;;) {
    if (!astack.waits_for_server()) {
      if (may_yield() && !astack.hot && policy.hands_over(astack.caller_processor, astack.caller_yields)) {
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
    co_await me.work(kStep + astack.pattern.takes(astack.called));
    finish(me, astack);
    after_call(me, astack);
    const shim::Moment now = machine_.moment();
    if (astack.polled.guest() && astack.polled.processor() == me.processor()) {
      co_await me.yield();
      policy.gave_way();
    } else if (astack.pattern.offers && policy.yield_due(now)) {
      ++astack.yields;
      co_await me.yield();
      const shim::Moment ended = machine_.moment();
      policy.yielded(ended.since(now.ticks), ended);
    }
    if (!may_yield() || astack.hot) continue;
    const std::uint16_t caller = astack.caller_processor;
    policy.called_from(caller);
    EStackPolicy::Move move = policy.move(caller, astack.caller_yields, now);
    if (policy.bound() && me.processor() != policy.processor()) move = EStackPolicy::Move::unbind;  // from outside
    if (move == EStackPolicy::Move::stay || (move == EStackPolicy::Move::bind && (mask_ >> caller & 1) == 0)) continue;
    if (move == EStackPolicy::Move::bind && (machine_.online() >> caller & 1) != 0) {
      policy.bound_to(caller, now);
      astack.attached = EStackHint::beside(caller);
      ++astack.moves;
      co_await me.keep_to(std::uint64_t{1} << caller);
    } else if (policy.bound()) {
      policy.unbound(now);
      astack.attached = EStackHint::anywhere();
      co_await me.keep_to(mask_);
    }
  }
}

/// What an E-stack reports to pollers and to the allocator.
void Domain::after_call(Thread& me, AStack& astack) {
  const shim::Moment now = machine_.moment();
  refresh();
  if (astack.hot) ++grant_.counters.misses;
  const bool hot = astack.estack_policy.served(now.since(astack.last_call), kWindow / kPerUs);
  astack.last_call = now.ticks;
  if (!may_poll()) return;
  if (hot) note_caller(astack);
  if ((!hot && gate_ != Gate::exchange) || !wants_offer(astack) || !grant_.hot_call() || astack.hot) return;
  astack.hot = offered_ = true;
  astack.last_hit = now.ticks;
  machine_.wake(me, *poller_);
}

Life hog(Thread& me) {
  for (;;) co_await me.work(us(1'000'000));
}

Life third_party(Thread& me, Machine& machine, std::uint64_t period, std::uint64_t work, Calls& done) {
  for (std::uint64_t due = machine.now() + period;; due = std::max(due + period, machine.now())) {
    if (due > machine.now()) co_await me.sleep(due - machine.now());
    co_await me.work(work);
    done.note(machine.now() - due);
  }
}

Life build(Thread& me, std::uint64_t seed) {
  std::minstd_rand random(static_cast<std::uint32_t>(seed));
  for (;;) {
    co_await me.work(std::uniform_int_distribution<std::uint64_t>(us(1'000), us(30'000))(random));
    co_await me.sleep(std::uniform_int_distribution<std::uint64_t>(us(20), us(3'000))(random));
  }
}

}  // namespace lrpc::simulated
