#include "estack_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "call/call_path.h"
#include "call/stack.h"
#include "clerk/secondary_regions.h"
#include "lrpc/shim/call/gates.h"
#include "lrpc/shim/call/step.h"
#include "lrpc/shim/system/cancellation.h"
#include "lrpc/shim/system/processor.h"
#include "poller/poller_team.h"
#include "poller/to_ticks.h"

namespace lrpc::server {
namespace {

/// An unassociated E-stack beyond those that are kept ends after this long without use, or after estack_idle if that is
/// shorter.
constexpr std::chrono::milliseconds kIdleLife{5'000};

/// With estack_idle without limit, too, it looks now and then.
constexpr std::chrono::milliseconds kLongestPark = std::chrono::hours(24);

/// Without a call for so long, what a poller remembers of an A-stack is forgotten.
constexpr auto kRememberedUs = static_cast<std::uint64_t>(std::chrono::microseconds(shim::kBoundedSleep).count());

/// Before another E-stack is tried, in ms, where the system had no thread or memory for one.
constexpr std::uint32_t kNoThreadPause = 100;

/// Whose calls are counted together. All callers of other hosts are one.
uid_t user_of(const ServedBinding& binding) noexcept { return binding.client().uid; }

}  // namespace

// ---- EStack: runs on its own thread ----

void EStack::run() {
  while (pool_.next_assignment(*this)) {
    serve_astack();
    detach();
  }
}

void EStack::serve_astack() {
  if (const auto& scheduling = astack_->binding->interface().options.scheduling) {
    spent_ = true;
    call_program([&] { (void)shim::schedule_this_thread(*scheduling); });  // was allowed at export; if no longer, calls
                                                                           // go on with ours
  }
  policy_ = {};
  say_attached();
  while (!leave_.load(std::memory_order_relaxed) && !astack_->binding->revoked()) {
    if (served_one() || hand_over_and_look()) continue;
    // At rest first: the pool says that somebody has a call and no E-stack, then looks who rests. Two loads for the
    // most part: another user that has as many as it may have does not get us to take the lock.
    at_rest_.store(true, std::memory_order_seq_cst);
    const bool may_be_wanted = pool_.shares_.eligible_wait().load(std::memory_order_seq_cst) ||
                               own_user_waits_->load(std::memory_order_seq_cst);
    if (may_be_wanted && pool_.is_wanted(*this)) break;
    const std::uint64_t now = shim::ticks();
    // The poller has the calls: one that it misses must find its E-stack.
    if (astack_->polled.load(std::memory_order_relaxed) == Polled::yes)
      last_used_.store(now, std::memory_order_relaxed);
    const auto unused = now - last_used_.load(std::memory_order_relaxed);
    if (!(pool_.options_.estack_idle == kNoLimit) &&
        unused >= to_ticks(static_cast<std::uint64_t>(pool_.options_.estack_idle.count()) * 1000)) {
      pool_.released_.fetch_add(1, std::memory_order_relaxed);
      break;
    }
    const std::chrono::nanoseconds idle = std::min(pool_.options_.estack_idle, kLongestPark);
    shim::park_estack(*astack_->head, astack_->linkage, leave_, astack_->binding->revoked_flag(),
                      left_to_poller(unused) ? std::min<std::chrono::nanoseconds>(idle, shim::kBoundedSleep) : idle);
    at_rest_.store(false, std::memory_order_relaxed);
  }
  at_rest_.store(false, std::memory_order_relaxed);
}

/// H3. While a poller is to take the calls, or may take the A-stack back at any moment, the E-stack parks (T11, T12)
/// for a bounded time only: the poller may be inside another client's long procedure, and a call that nobody waits for,
/// which is not rung again, would be there as long. What is only remembered is forgotten before a longer sleep.
bool EStack::left_to_poller(std::uint64_t unused) noexcept {
  Polled polled = astack_->polled.load(std::memory_order_relaxed);
  if (polled == Polled::remembered && unused >= to_ticks(kRememberedUs) &&
      astack_->polled.compare_exchange_strong(polled, Polled::no))
    return false;
  return polled != Polled::no;
}

bool EStack::served_one() {
  if (serve(*astack_, context_) == Served::nothing) return false;
  after_call();
  return true;
}

/// Gives the processor away in the hope that the caller takes it, comes back with the next call and gives it back. True
/// if there is something to do; false: park.
bool EStack::hand_over_and_look() {  // H2
  if (!policy_.hands_over(context_.caller_processor(), context_.caller_yields())) return false;
  if (exchanges()) return false;  // from now on the caller does not give its processor back
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
  pool_.processors_.refresh(now.ticks);
  if (astack_->polled.load(std::memory_order_relaxed) == Polled::yes) {
    pool_.poller_misses_.fetch_add(1, std::memory_order_relaxed);
    pollers_.grant().missed();
  }
  const bool hot =
      policy_.served(now.since(astack_->last_call), static_cast<std::uint64_t>(pool_.options_.poll_window.count()));
  astack_->last_call = now.ticks;
  // A call that was refused has not primed the context: what it names may be of another interface.
  const bool may_block = context_.procedure() >= astack_->binding->interface().stubs.size() ||
                         astack_->entries[context_.procedure()].may_block;
  if (gate == shim::Gate::adaptive || gate == shim::Gate::exchange) {
    if (hot) pollers_.called_from(*astack_, caller, now);
    if (!spent_ && !may_block && (hot || gate == shim::Gate::exchange) && pollers_.wants_offer(*astack_, now))
      pollers_.offer(binding_, *astack_);
  }
  // A call that was rung for the poller says nothing about yielding.
  if ((gate == shim::Gate::adaptive || gate == shim::Gate::handoff) && !exchanges()) sit_with_caller(now);
}

/// Whether the caller has been told that a poller has the A-stack: an offer alone is not enough, which may lie for long.
/// Read where the caller could write: it would only deceive its own E-stack.
bool EStack::exchanges() const noexcept { return astack_->head->polled.load(std::memory_order_relaxed) != 0; }

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
  // H1, said before it is true: the caller's next call may come while we are on our way, and is to wait for us there.
  policy_.bound_to(caller, now);
  say_attached();
  if (shim::move_to_processor(caller)) {
    pool_.moves_.fetch_add(1, std::memory_order_relaxed);
  } else {
    leave_processor(now);
  }
}

/// The scheduler is to place it again.
void EStack::leave_processor(shim::Moment now) {
  if (!policy_.bound()) return;
  pool_.processors_.spread_this_thread();
  policy_.unbound(now);
  say_attached();
}

/// H1. Sequentially consistent, as detach() has it.
void EStack::say_attached() noexcept {
  const auto hint = policy_.bound() ? shim::EStackHint::beside(policy_.processor()) : shim::EStackHint::anywhere();
  astack_->head->attached.store(hint.bits(), std::memory_order_seq_cst);
}

void EStack::detach() {
  leave_processor(shim::this_moment());
  LRPC_STEP("T14");
  // T14: first say, to the client and to the clerk, that nobody is associated; then look once more. A caller rings and
  // looks at the hint then, the clerk looks at the association: so either we see the call, or the bell brings another
  // E-stack.
  astack_->head->attached.store(shim::EStackHint::nobody().bits(), std::memory_order_seq_cst);
  {
    std::lock_guard lock(pool_.mutex_);
    astack_->estack.store(nullptr, std::memory_order_seq_cst);
    --pool_.associated_;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  LRPC_STEP("T14 last look");
  (void)serve(*astack_, context_);

  std::shared_ptr<ServedBinding> last;  // let go of outside the lock: it may unmap
  std::lock_guard lock(pool_.mutex_);
  pool_.shares_.give(user_of(*binding_));
  astack_ = nullptr;
  last.swap(binding_);
  leave_.store(false);
}

// ---- EStackPool ----

EStackPool::EStackPool(const ServerOptions& options, DomainProcessors& processors, PollerTeam& pollers,
                       std::function<void(std::uint32_t)> ask_clerk)
    : options_(options),
      pollers_(pollers),
      processors_(processors),
      ask_clerk_(std::move(ask_clerk)),
      shares_(options) {}

void EStackPool::associate(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  std::lock_guard lock(mutex_);
  if (stop_ || astack.estack.load() != nullptr || binding->revoked()) return;
  (void)shares_.add({.user = user_of(*binding), .binding = binding, .astack = &astack});
  supply_locked();
  // Also if it has waited before: whoever could be spared may have been busy then, and the system out of threads.
  if (astack.estack.load() == nullptr) reclaim_locked(user_of(*binding));
}

void EStackPool::stand_by(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) noexcept {
  std::lock_guard lock(mutex_);
  if (stop_ || idle_.empty() || shares_.any_waiting() || astack.estack.load() != nullptr || binding->revoked()) return;
  const uid_t user = user_of(*binding);
  if (!shares_.may_have_another(user) || shares_.held(user) >= shares_.share()) return;
  assign_idle_locked(binding, astack);
}

void EStackPool::assign_idle_locked(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  EStack* const estack = idle_.back();
  idle_.pop_back();
  assign_locked(*estack, binding, astack);
  estack->assigned_.notify_one();
}

void EStackPool::assign_locked(EStack& estack, const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  LRPC_STEP("server c");
  estack.binding_ = binding;
  estack.astack_ = &astack;
  estack.last_used_.store(shim::ticks());
  astack.estack.store(&estack);
  ++associated_;
  estack.own_user_waits_ = &shares_.take(user_of(*binding));
}

bool EStackPool::start_locked(EStack*& estack) {
  const std::size_t before = estacks_.size();
  try {
    idle_.reserve(before + 1);
    estacks_.push_back(std::make_unique<EStack>(*this, pollers_));
    estack = estacks_.back().get();
    shim::Thread thread;
    if (thread.start(procedure_thread("lrpc-estack", options_.estack_size), &EStackPool::thread_main, estack)) {
      thread.detach();  // stop() waits for the E-stack, which is more than its thread
      return true;
    }
  } catch (const std::bad_alloc&) {
  }
  estacks_.resize(before);
  return false;
}

void* EStackPool::thread_main(void* estack) {
  const shim::NoCancellation never;  // a procedure must not take its E-stack along
  static_cast<EStack*>(estack)->run();
  return nullptr;
}

/// Those that need none any more are dropped.
std::optional<WaitingCall> EStackPool::take_waiting_locked() {
  for (;;) {
    auto next = shares_.next();
    if (!next || !(next->astack->estack.load() != nullptr || next->binding->revoked())) return next;
  }
}

void EStackPool::reclaim_locked(uid_t user) {
  // T14 · the one unused for longest (LRPC §3.2), first of those who have more than their share, that does not execute a
  // call now; those look whether they are wanted when they are done. One whose A-stack is being served by a poller
  // sleeps, and nobody would wake it to look.
  const std::size_t share = shares_.share();
  EStack* victim = nullptr;
  bool victim_has_more = false;
  for (const auto& estack : estacks_) {
    if (estack->astack_ == nullptr || estack->leave_.load()) continue;
    if (!estack->at_rest_.load(std::memory_order_seq_cst) && estack->astack_->linkage.next_generation() == 0) continue;
    const uid_t holder = user_of(*estack->binding_);
    if (!shares_.may_take(user, holder)) continue;
    const bool has_more = shares_.held(holder) > share;
    const bool better =
        victim == nullptr ||
        (has_more != victim_has_more ? has_more : estack->last_used_.load() < victim->last_used_.load());
    if (!better) continue;
    victim = estack.get();
    victim_has_more = has_more;
  }
  if (victim == nullptr) return;
  ++reclaimed_;
  victim->leave_.store(true);
  shim::unpark_estack(*victim->astack_->head);
}

bool EStackPool::is_wanted(const EStack& estack) {
  std::lock_guard lock(mutex_);
  return shares_.is_wanted(user_of(*estack.binding_));
}

void EStackPool::admit(const ServedBinding& binding) {
  std::lock_guard lock(mutex_);
  shares_.admit(user_of(binding));
}

void EStackPool::dismiss(ServedBinding& binding) noexcept {
  const uid_t user = user_of(binding);
  std::lock_guard lock(mutex_);
  if (shares_.any_waiting(user)) {
    for (ServedAStack& astack : binding.astacks()) (void)shares_.remove(user, astack);
    binding.each_secondary([&](SecondaryRegion& region) {  // none of them goes now: that would unmap
      for (ServedAStack& astack : region.astacks()) (void)shares_.remove(user, astack);
    });
  }
  shares_.dismiss(user);
}

void EStackPool::let_go(std::span<ServedAStack> astacks) {
  std::lock_guard lock(mutex_);
  for (ServedAStack& astack : astacks) {
    (void)shares_.remove(user_of(*astack.binding), astack);
    EStack* const estack = astack.estack.load();
    if (estack == nullptr) continue;
    estack->leave_.store(true);
    shim::unpark_estack(*astack.head);
  }
}

bool EStackPool::next_assignment(EStack& estack) {
  std::unique_lock lock(mutex_);
  while (estack.astack_ == nullptr) {
    if (!stop_ && !estack.spent_) {
      if (const auto next = take_waiting_locked()) {
        assign_locked(estack, next->binding, *next->astack);
        break;
      }
      idle_.push_back(&estack);
      bool timed_out = false;
      if (estacks_.size() <= options_.kept_estacks) {
        estack.assigned_.wait(lock);
      } else {
        timed_out =
            estack.assigned_.wait_for(lock, std::min(kIdleLife, options_.estack_idle)) == std::cv_status::timeout;
      }
      if (estack.astack_ != nullptr) break;
      std::erase(idle_, &estack);
      if (!stop_ && (!timed_out || estacks_.size() <= options_.kept_estacks)) continue;
    }
    std::erase_if(estacks_, [&](const auto& owned) { return owned.get() == &estack; });  // `estack` is gone
    if (shares_.any_waiting() && !stop_) ask_clerk_(0);  // it could not be used again: there is room for a new one
    ended_.notify_all();
    return false;
  }
  return true;
}

void EStackPool::supply() {
  std::lock_guard lock(mutex_);
  supply_locked();
}

void EStackPool::supply_locked() {
  while (!stop_ && (!idle_.empty() || estacks_.size() < most_estacks(options_))) {
    auto next = take_waiting_locked();
    if (!next) return;
    if (!idle_.empty()) {
      assign_idle_locked(next->binding, *next->astack);
      continue;
    }
    EStack* estack = nullptr;
    if (!start_locked(estack)) {
      shares_.put_back(*std::move(next));
      // Whoever waits for no return does not ring again.
      ask_clerk_(kNoThreadPause);
      return;
    }
    assign_locked(*estack, next->binding, *next->astack);
    estack->assigned_.notify_one();
  }
}

void EStackPool::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  shares_.clear();
  // Again and again: a client that writes into the word as an E-stack is about to park has it sleep all the same.
  do {
    for (const auto& estack : estacks_) {
      if (estack->astack_ != nullptr) {
        estack->leave_.store(true);
        shim::unpark_estack(*estack->astack_->head);
      } else {
        estack->assigned_.notify_one();
      }
    }
  } while (!ended_.wait_for(lock, shim::kBoundedSleep, [&] { return estacks_.empty(); }));
}

std::uint64_t EStackPool::alive() const {
  std::lock_guard lock(mutex_);
  return estacks_.size();
}

std::uint64_t EStackPool::associated() const {
  std::lock_guard lock(mutex_);
  return associated_;
}

std::uint64_t EStackPool::reclaimed() const {
  std::lock_guard lock(mutex_);
  return reclaimed_;
}

}  // namespace lrpc::server
