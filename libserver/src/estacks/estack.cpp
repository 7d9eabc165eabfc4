// An E-stack: a thread that serves the calls of the A-stack that it is associated with, and parks between them.
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "call/call_path.h"
#include "estack_pool.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller/poller_team.h"
#include "poller/to_ticks.h"

namespace lrpc::server {

/// Even if estack_idle is without limit, an E-stack wakes and looks this often.
constexpr std::chrono::milliseconds kLongestPark = std::chrono::hours(24);

/// After this long without a call, an E-stack sleeps for longer, and no poller remembers its A-stack.
constexpr auto kRestsAfterUs = static_cast<std::uint64_t>(std::chrono::microseconds(shim::kBoundedSleep).count());

/// While its caller calls without a pause, an E-stack looks this often whether a call waits for one.
constexpr std::uint64_t kWaitingLookUs = 1'000;

void EStack::run() {
  while (pool_.next_assignment(*this)) {
    serve_astack();
    detach();
  }
}

void EStack::serve_astack() {
  spent_ = schedule_as_exported(astack_->binding->interface());
  policy_ = {};
  say_attached();
  std::uint64_t looked = shim::ticks();
  while (!leave_.load(std::memory_order_relaxed) && !astack_->binding->revoked()) {
    if (served_one() || hand_over_and_look()) {
      const std::uint64_t called = last_used_.load(std::memory_order_relaxed);
      if (called - looked < to_ticks(kWaitingLookUs)) continue;
      looked = called;
      if (may_be_wanted() && pool_.leaves_amid_calls(*this)) break;
      continue;
    }
    // Set before the look: the pool notes first that a call waits, then looks which E-stacks rest.
    at_rest_.store(true, std::memory_order_seq_cst);
    if (may_be_wanted() && pool_.is_wanted(*this)) break;
    const std::uint64_t now = shim::ticks();
    // While a poller has the calls, the A-stack is in use: a call that the poller misses must find its E-stack.
    if (astack_->polled.load(std::memory_order_relaxed) == Polled::yes)
      last_used_.store(now, std::memory_order_relaxed);
    const auto unused = now - last_used_.load(std::memory_order_relaxed);
    if (!(pool_.options_.estack_idle == kNoLimit) &&
        unused >= to_ticks(static_cast<std::uint64_t>(pool_.options_.estack_idle.count()) * 1000)) {
      pool_.released_.fetch_add(1, std::memory_order_relaxed);
      break;
    }
    park(unused);
    policy_.parked(shim::this_moment().since(now));
    at_rest_.store(false, std::memory_order_relaxed);
  }
  at_rest_.store(false, std::memory_order_relaxed);
}

/// Whether a call may wait for this E-stack. Mostly these two loads suffice: a user that waits at its own limit does
/// not make other users' E-stacks take the lock.
bool EStack::may_be_wanted() const {
  return pool_.shares_.eligible_wait().load(std::memory_order_seq_cst) ||
         own_user_waits_->load(std::memory_order_seq_cst);
}

/// T11, T12. Soon after a call for a bounded time, by a plain futex, which is quick. `unused`: ticks() since the last
/// call.
void EStack::park(std::uint64_t unused) noexcept {
  const std::chrono::nanoseconds idle = std::min(pool_.options_.estack_idle, kLongestPark);
  const bool briefly = unused < to_ticks(kRestsAfterUs) || left_to_poller();
  // A client may move a longer sleep to a futex of its own: then the summons must still wake the thread.
  const shim::SleepingWord* const summons = briefly || !shim::can_wait_any() ? nullptr : &astack_->summons;
  shim::park_estack(*astack_->head, astack_->linkage, leave_, astack_->binding->revoked_flag(),
                    briefly ? std::min<std::chrono::nanoseconds>(idle, shim::kBoundedSleep) : idle, summons);
  if (!briefly) context_.note_clock();  // the machine may have been suspended meanwhile
}

/// H3. While a poller is to take the calls, or may take the A-stack back at any moment, the E-stack sleeps only for a
/// bounded time: the poller may be in another client's long procedure, and a call that nobody waits for is not rung
/// again, so it would wait as long. If the A-stack is only remembered, the poller must forget it from here on.
bool EStack::left_to_poller() noexcept {
  Polled polled = Polled::remembered;
  return !astack_->polled.compare_exchange_strong(polled, Polled::no) && polled == Polled::yes;
}

bool EStack::served_one() {
  if (serve(*astack_, context_) == Served::nothing) return false;
  after_call();
  return true;
}

/// Yields the processor so that the caller can take it, come back with the next call and yield in turn. True: there is
/// something to do; false: park.
bool EStack::hand_over_and_look() {  // H2
  if (!policy_.hands_over(context_.caller_processor(), context_.caller_yields())) return false;
  if (exchanges()) return false;  // from now on the caller leaves its calls to the poller, and yields no more
  policy_.gave_way();
  for (int i = 0; i < EStackPolicy::kYields; ++i) {
    sched_yield();
    if (leave_.load(std::memory_order_relaxed) || served_one()) return true;
  }
  return false;
}

void EStack::after_call() {
  const shim::Moment now = shim::this_moment();
  const shim::Gate gate = astack_->binding->gate();
  const std::uint16_t caller = context_.caller_processor();
  last_used_.store(now.ticks, std::memory_order_relaxed);
  context_.note_clock(now);
  pool_.processors_.refresh(now.ticks);
  if (astack_->polled.load(std::memory_order_relaxed) == Polled::yes) {
    pool_.poller_misses_.fetch_add(1, std::memory_order_relaxed);
    pollers_.grant().missed();
  }
  const bool hot =
      policy_.served(now.since(astack_->last_call), static_cast<std::uint64_t>(pool_.options_.poll_window.count()));
  astack_->last_call = now.ticks;
  // A call that was refused has not primed the context, which may name a procedure of another interface.
  const bool may_block = context_.procedure() >= astack_->binding->interface().stubs.size() ||
                         astack_->entries[context_.procedure()].may_block;
  if (gate == shim::Gate::adaptive || gate == shim::Gate::exchange) {
    if (hot) pollers_.called_from(*astack_, caller, now);
    if (!spent_ && !may_block && (hot || gate == shim::Gate::exchange) && pollers_.wants_offer(*astack_, now))
      pollers_.offer(binding_, *astack_);
  }
  if (poller_is_here()) {  // the poller may keep the processor for long: not measured
    sched_yield();
    policy_.gave_way();
  } else if (policy_.yield_due(now)) {
    sched_yield();
    const shim::Moment ended = shim::this_moment();
    policy_.yielded(ended.since(now.ticks), ended);
  }
  // A call that was rung for the poller says nothing about yielding.
  if ((gate == shim::Gate::adaptive || gate == shim::Gate::handoff) && !exchanges()) sit_with_caller(now);
}

/// Whether the hint tells the caller that a poller has the A-stack. An offer alone does not count: it may wait for
/// long. The client can write the hint, but would deceive only its own E-stack.
bool EStack::exchanges() const noexcept { return astack_->head->polled.load(std::memory_order_relaxed) != 0; }

/// A poller is on this processor as a guest (H14): callers here give the processor to it, not to the E-stack.
bool EStack::poller_is_here() const noexcept {
  const shim::PolledHint hint(astack_->head->polled.load(std::memory_order_relaxed));
  return hint.guest() && hint.processor() == shim::current_processor();
}

void EStack::sit_with_caller(shim::Moment now) {  // H2
  const std::uint16_t caller = context_.caller_processor();
  policy_.called_from(caller);
  // Moved from outside: taskset, a cpuset, a processor that went offline.
  if (policy_.bound() && shim::current_processor() != policy_.processor()) return leave_processor(now);
  switch (policy_.move(caller, context_.caller_yields(), now)) {
    case EStackPolicy::Move::stay: return;
    case EStackPolicy::Move::unbind: return leave_processor(now);
    case EStackPolicy::Move::bind: break;
  }
  if (!pool_.processors_.contains(caller)) return;
  // H1, set before it is true: the caller's next call may come during the move, and must wait for the E-stack there.
  policy_.bound_to(caller, now);
  say_attached();
  if (shim::move_to_processor(caller)) {
    pool_.moves_.fetch_add(1, std::memory_order_relaxed);
  } else {
    leave_processor(now);
  }
}

/// Unbinds the thread: the scheduler places it again.
void EStack::leave_processor(shim::Moment now) {
  if (!policy_.bound()) return;
  pool_.processors_.spread_this_thread();
  policy_.unbound(now);
  say_attached();
}

/// H1. Sequentially consistent, as in detach().
void EStack::say_attached() noexcept {
  const auto hint = policy_.bound() ? shim::EStackHint::beside(policy_.processor()) : shim::EStackHint::anywhere();
  astack_->head->attached.store(hint.bits(), std::memory_order_seq_cst);
}

void EStack::detach() {
  leave_processor(shim::this_moment());
  LRPC_STEP("T14");
  // T14: first tell the client (by the hint) and the clerk (by the association) that no E-stack is associated; then
  // look once more. A caller rings and then reads the hint, and the clerk reads the association: so either this look
  // finds the call, or the bell brings another E-stack. While a poller has the A-stack, or may take it back, the caller
  // may have made no fence of its own: see ring_for_poller().
  astack_->head->attached.store(shim::EStackHint::nobody().bits(), std::memory_order_seq_cst);
  {
    std::lock_guard lock(pool_.mutex_);
    astack_->estack.store(nullptr, std::memory_order_seq_cst);
    --pool_.associated_;
  }
  (void)shim::fence_before_last_look(astack_->polled.load(std::memory_order_relaxed) != Polled::no);
  LRPC_STEP("T14 last look");
  (void)serve(*astack_, context_);

  std::shared_ptr<ServedBinding> last;  // released after the lock: it may unmap
  std::lock_guard lock(pool_.mutex_);
  pool_.shares_.give(binding_->holder());
  astack_ = nullptr;
  last.swap(binding_);
  leave_.store(false);
}

}  // namespace lrpc::server
