// The slow half of steps 4 and 5: everything between "no poller answered" and "the result is there or never will be".
#include <sched.h>

#include <algorithm>
#include <utility>

#include "binding/waiting.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/cancellation.h"
#include "lrpc/detail/shim/system/thread.h"
#include "transfer.h"

namespace lrpc::client {
namespace {

using shim::AStackHead;
using shim::CallWord;
using shim::LinkageRecord;
using shim::Turn;

using shim::CallerPolicy;
using shim::Moment;
using shim::this_moment;

/// The number of calls between two checks of the thread's scheduling policy.
constexpr std::uint32_t kCallsBetweenLooks = 256;
constexpr std::chrono::microseconds kLoan(CallerPolicy::kLendMicroseconds);

/// The peer wrote a word that the protocol does not allow: no further call is trusted to it.
std::uint16_t peer_broke_protocol(BindingObject& binding, LinkageRecord& linkage) noexcept {
  linkage.quarantined = true;
  binding.revoke();
  return failed(Errc::call_failed);
}

std::uint16_t transfer_inline(BindingObject& binding, LinkageRecord& linkage, CallWord called, bool rung) noexcept {
  AStackHead& head = *linkage.astack.head;
  if (!rung) shim::ring_exchange(head, called);
  binding.inline_server().serve(binding.inline_server().server, linkage.index);
  const CallWord word = shim::load_word(head);
  return word.is(Turn::returned, linkage.generation()) ? word.status() : failed(Errc::call_failed);
}

/// Whether this thread has a real-time policy: yielding to an ordinary E-stack would then do nothing. Checked again
/// from time to time, because a policy may change.
bool is_realtime() noexcept {
  thread_local std::uint32_t calls = 0;
  thread_local bool realtime = false;
  if (calls++ % kCallsBetweenLooks == 0) realtime = shim::is_realtime(sched_getscheduler(0));
  return realtime;
}

/// Whether the binding and the thread let a caller hand its processor over, so that the E-stack gets it without a
/// wake-up's delay.
bool may_yield(const BindingObject& binding) noexcept { return binding.gate() != shim::Gate::sleep && !is_realtime(); }

/// Yields the processor and tells the policy the outcome. True if the call has returned.
bool yield_and_learn(LinkageRecord& linkage, CallWord& word) noexcept {
  const std::uint64_t began = shim::ticks();
  const bool returned = shim::yield_for_return(*linkage.astack.head, linkage.generation(),
                                               CallerPolicy::kYieldMicroseconds * shim::ticks_per_microsecond(), word);
  const Moment ended = this_moment();
  linkage.policy.yielded(returned, ended.since(began), ended);
  return returned;
}

/// Yields, so that a thread that waits for this processor can run.
void offer_processor(LinkageRecord& linkage) noexcept {
  const std::uint64_t ran = shim::thread_microseconds();
  const Moment began = this_moment();
  if (!linkage.policy.offer_due(ran, began)) return;
  sched_yield();
  const Moment ended = this_moment();
  linkage.policy.offered(ended.since(began.ticks), ran, ended);
}

/// The deadline passed, or the call was cancelled: leave the A-stack to the server, or take the result that came at the
/// last moment.
std::uint16_t abandon_call(LinkageRecord& linkage, const Waiting& waiting) noexcept {
  AStackHead& head = *linkage.astack.head;
  if (!shim::abandon(head, linkage.generation())) {  // T15
    const CallWord word = shim::load_word(head);
    if (word.is(Turn::returned, linkage.generation())) return word.status();
  }
  linkage.quarantined = true;
  return failed(waiting.why_over());
}

/// 4 and 5 · by a guest, a poller that runs on this processor while we sleep. H13: either the guest has the call, or
/// we see that it has gone.
std::uint16_t lend(BindingObject& binding, LinkageRecord& linkage, CallWord called) noexcept {
  AStackHead& head = *linkage.astack.head;
  linkage.estack_may_sleep = true;  // as for an exchange
  const bool lent = shim::ring_for_poller(head, called) || shim::still_polled(head);
  if (!lent) wake_estack(binding, linkage);
  return sleep_until_returned(binding, linkage, lent);
}

}  // namespace

CallerPolicy::Way choose_way(const BindingObject& binding, LinkageRecord& linkage, bool may_yield) noexcept {
  const AStackHead& head = *linkage.astack.head;
  const shim::PolledHint polled(head.polled.load(std::memory_order_relaxed));
  // Pollers serve only these gates; with another gate a hint that announces one is false.
  const bool may_exchange = binding.gate() == shim::Gate::adaptive || binding.gate() == shim::Gate::exchange;
  const CallerPolicy::Way way =
      linkage.policy.choose({.polled = may_exchange ? polled : shim::PolledHint(),
                             .estack = shim::EStackHint(head.attached.load(std::memory_order_relaxed)),
                             .processor = shim::current_processor(),
                             .now = this_moment()},
                            may_yield);
  // H8. A plain store may overwrite PARKED. The note stays set for as long as a hint is trusted: see wake_estack().
  if (way == CallerPolicy::Way::exchange) linkage.estack_may_sleep = true;
  // The inline call path checks only the thread's limits. Without trust each call takes the slow path, where
  // limit_call() applies the binding's call_timeout.
  if (binding.times_calls()) linkage.policy.trust_no_longer();
  return way;
}

void wake_estack(BindingObject& binding, LinkageRecord& linkage) noexcept {
  LRPC_STEP("T4");
  AStackHead& head = *linkage.astack.head;
  linkage.estack_may_sleep = false;
  linkage.policy.trust_no_longer();
  shim::futex_wake(head.word, shim::Sleeper::estack);
  // Our exchange of the word comes before this load, and an E-stack that detaches clears the hint before it looks at
  // the word: so one of the two sees the other.
  if (head.attached.load(std::memory_order_seq_cst) == 0) binding.ring_bell();
}

shim::Wake sleep_for_return(const BindingObject& binding, LinkageRecord& linkage, const Waiting& waiting,
                            std::chrono::nanoseconds limit) noexcept {
  AStackHead& head = *linkage.astack.head;
  if (!waiting.cancellable()) return shim::sleep_for_return(head, linkage.generation(), binding.revoked_flag(), limit);
  // T3, but on more than one word.
  shim::FutexWait word{&head.word, 0, true};
  if (!shim::announce_sleep(head, linkage.generation(), binding.revoked_flag(), word.expected))
    return shim::Wake::changed;
  return waiting.sleep<1>({word}, limit);
}

std::uint16_t sleep_until_returned(BindingObject& binding, LinkageRecord& linkage, bool lent) noexcept {
  AStackHead& head = *linkage.astack.head;
  const Waiting waiting(linkage, binding.call_timeout());
  LookAfterServer look;
  for (;;) {
    const CallWord word = shim::load_word(head);
    if (word.is(Turn::returned, linkage.generation())) return word.status();
    if (binding.revoked() || word.revoked()) {  // word: a server may set REVOKED before our watcher sees the end
      binding.revoke();
      linkage.quarantined = true;
      return failed(Errc::call_failed);
    }
    if (!word.is(Turn::called, linkage.generation())) return peer_broke_protocol(binding, linkage);
    const std::chrono::nanoseconds limit = waiting.left(lent ? kLoan : shim::kBoundedSleep);
    if (limit.count() <= 0 || waiting.cancelled()) return abandon_call(linkage, waiting);
    if (!look.due()) {
      const shim::Wake wake = sleep_for_return(binding, linkage, waiting, limit);
      look.slept(wake);
      if (wake != shim::Wake::timed_out) continue;
      if (std::exchange(lent, false)) {  // H13
        linkage.policy.loan_missed(this_moment());
        wake_estack(binding, linkage);
        continue;
      }
    }
    binding.check_server();  // H11
    binding.overrule_hints(head);
    look.looked();
  }
}

Errc why_over() noexcept { return Waiting().why_over(); }

CallWord limit_call(const BindingObject& binding, LinkageRecord& linkage, CallWord called) noexcept {
  std::int64_t left = shim::Deadline::kNever;
  if (shim::CallLimits* const limits = shim::calling_thread.limits; limits != nullptr) {
    left = limits->deadline.left();
    bool over = false;
    if (left <= 0) [[unlikely]] {  // by ticks(); only the clock decides
      over = limits->deadline.until() <= Waiting::Clock::now();
      left = 1;
    }
    const shim::Cancellations* const cancellations = limits->cancellations().get();
    if (over || (cancellations != nullptr && shim::cancelled(cancellations))) [[unlikely]] {
      linkage.take_back();  // never rung
      return {};
    }
  }
  if (binding.times_calls()) left = std::min(left, shim::Deadline::span(binding.call_timeout()).count());
  if (left == shim::Deadline::kNever) return called;
  linkage.astack.limit->store(static_cast<std::uint64_t>(left),
                              std::memory_order_relaxed);  // before the ring's release
  return called.with(CallWord::kLimited);
}

std::uint16_t transfer_slow(BindingObject& binding, LinkageRecord& linkage, CallWord called, bool rung) noexcept {
  if (!rung && binding.times_calls()) {
    called = limit_call(binding, linkage, called);  // even if Call::limit() limited it
    if (called == CallWord()) return failed(why_over());
  }
  const shim::NoCancellation never;
  if (binding.inline_server().serve != nullptr) return transfer_inline(binding, linkage, called, rung);
  if (binding.gate() == shim::Gate::trap) return transfer_trap(binding, linkage, called, rung);
  if (binding.gate() == shim::Gate::none) {  // nobody serves it, see set_inline_server()
    linkage.take_back();                     // never rung
    return failed(Errc::call_failed);
  }
  AStackHead& head = *linkage.astack.head;

  // Before the ring, decide how to wait. kCallerYields tells the E-stack that we yield, or would if it were on our
  // processor, so that it waits for us in the same way.
  CallWord word;
  bool yield = false;
  if (!rung) {
    const bool may = may_yield(binding);
    const CallerPolicy::Way way = choose_way(binding, linkage, may);
    yield = way == CallerPolicy::Way::yield;
    if (way == CallerPolicy::Way::exchange) {
      if (may) offer_processor(linkage);
      shim::ring_exchange(head, called);  // T1
      if (shim::poll_rung(linkage, binding.poll_limits(), word)) return word.status();
      rung = true;
    } else if (way == CallerPolicy::Way::lend) {
      return lend(binding, linkage, called);
    } else if (may && linkage.policy.would_yield(this_moment())) {
      called = called.with(CallWord::kCallerYields);
    }
  }
  if (rung) linkage.policy.exchange_missed(this_moment());  // H9

  // 4 · ring, and trap only if the transfer needs it.
  const bool parked = !rung && shim::ring_handoff(head, called);  // T2
  // `attached` 0: an E-stack may have left without a trace in the word; wake_estack() then rings the bell.
  if (parked || linkage.estack_may_sleep || head.attached.load(std::memory_order_seq_cst) == 0)
    wake_estack(binding, linkage);

  LRPC_STEP("client 5 slow");
  // 5 · wait: yield the processor (H10), then sleep. No yield after a missed exchange: the processor was ours alone.
  if (yield && yield_and_learn(linkage, word)) return word.status();
  return sleep_until_returned(binding, linkage);
}

void quarantine_astack(BindingObject& binding, LinkageRecord& linkage) noexcept {
  binding.astacks(linkage.astack.astack_class).give_up(linkage);
  binding.quarantine(linkage);
}

Errc Call::failure(std::uint16_t status) noexcept {
  const auto code = static_cast<Errc>(status & ~(shim::call_status::kFailed | shim::call_status::kTold));
  // All that a server may say but call_failed, which is the rest.
  for (const Errc known : {Errc::call_aborted, Errc::call_cancelled, Errc::call_lost, Errc::binding_revoked,
                           Errc::bad_procedure, Errc::argument_out_of_range, Errc::argument_too_long, Errc::bad_handle,
                           Errc::exception_escaped, Errc::bad_result, Errc::limit_reached, Errc::message_too_long,
                           Errc::not_permitted, Errc::not_supported, Errc::invalid_argument}) {
    if (code == known && (status & shim::call_status::kFailed) != 0) return code;
  }
  return Errc::call_failed;
}

}  // namespace lrpc::client
