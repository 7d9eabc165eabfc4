#include "estack_pool.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "call/stack.h"
#include "clerk/secondary_regions.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"

namespace lrpc::server {

/// An unassociated E-stack beyond those that are kept ends after this long without use, or after estack_idle if that is
/// shorter.
constexpr std::chrono::milliseconds kIdleLife{5'000};

/// In ms: the pause before another E-stack is tried, if the system had no thread or memory for one.
constexpr std::uint32_t kNoThreadPause = 100;

EStackPool::EStackPool(const ServerOptions& options, DomainProcessors& processors, PollerTeam& pollers,
                       std::function<void(std::uint32_t)> ask_clerk)
    : options_(options),
      pollers_(pollers),
      processors_(processors),
      ask_clerk_(std::move(ask_clerk)),
      shares_(options) {}

bool EStackPool::associate(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack, bool other_waits) {
  std::lock_guard lock(mutex_);
  if (stop_ || astack.estack.load() != nullptr || binding->revoked()) return true;
  (void)shares_.add({.holder = binding->holder(), .binding = binding, .astack = &astack});
  if (!other_waits) supply_locked();
  return astack.estack.load() != nullptr;
}

void EStackPool::stand_by(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) noexcept {
  std::lock_guard lock(mutex_);
  if (stop_ || idle_.empty() || shares_.any_waiting() || astack.estack.load() != nullptr || binding->revoked()) return;
  if (!shares_.has_few(binding->holder())) return;
  assign_idle_locked(binding, astack);
}

void EStackPool::reclaim(Holder holder, std::size_t calls) {
  std::lock_guard lock(mutex_);
  if (stop_) return;
  supply_locked();  // an E-stack may have become idle before the last of these calls waited
  // Also for calls that waited before: an E-stack that may leave now may have been busy then, and the system out of
  // threads.
  reclaim_locked(holder, std::min(calls, shares_.waiting(holder)));
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
  estack.own_user_waits_ = &shares_.take(binding->holder());
}

/// Starts one more, which is idle. False: the system had no thread or memory for it.
bool EStackPool::start_locked() {
  const std::size_t before = estacks_.size();
  try {
    idle_.reserve(before + 1);
    spare_.reserve(before + 1);
    EStack& estack = *estacks_.emplace_back(std::make_unique<EStack>(*this, pollers_));
    if (estack.thread_.start<&EStack::run>(procedure_thread("lrpc-estack", options_.estack_size), &estack)) {
      idle_.push_back(&estack);
      return true;
    }
  } catch (const std::bad_alloc&) {
  }
  estacks_.resize(before);
  return false;
}

/// The next waiting call. Calls that have an E-stack by now, or whose binding is revoked, are dropped.
std::optional<WaitingCall> EStackPool::take_waiting_locked() {
  for (;;) {
    auto next = shares_.next();
    if (!next || !(next->astack->estack.load() != nullptr || next->binding->revoked())) return next;
  }
}

void EStackPool::reclaim_locked(Holder holder, std::size_t most) {
  // T14 · dismisses E-stacks that execute no call now: those of holders with more than their share before the others,
  // and among equals the ones unused for longest (LRPC §3.2). E-stacks that execute a call check is_wanted() after it.
  // A resting E-stack is dismissed even if a poller serves its A-stack: it sleeps, and nothing would wake it to check.
  if (most == 0) return;
  ++searches_;
  spare_.clear();
  for (const auto& estack : estacks_) {
    if (estack->astack_ == nullptr || estack->leave_.load()) continue;
    if (!estack->at_rest_.load(std::memory_order_seq_cst) && estack->astack_->linkage.next_generation() == 0) continue;
    const Holder from = estack->binding_->holder();
    if (!shares_.may_take(holder, from)) continue;
    spare_.push_back({shares_.has_many(holder, from), estack->last_used_.load(), estack.get()});
  }
  std::ranges::sort(spare_, [](const Spare& one, const Spare& other) {
    return one.of_many != other.of_many ? one.of_many : one.last_used < other.last_used;
  });
  shares_.begin_search();
  std::size_t got = 0;
  for (const Spare& spare : spare_) {
    if (most == 0) break;
    if (!shares_.take_in_search(holder, spare.estack->binding_->holder(), got)) continue;
    dismiss_locked(*spare.estack, *spare.estack->astack_);
    --most;
    ++reclaimed_;
  }
}

void EStackPool::reclaim_for_refused_locked() {
  if (const auto user = shares_.refused()) reclaim_locked(*user, 1);
  if (const auto host = shares_.refused_host()) reclaim_locked(*host, 1);
}

/// T14: it detaches at its next look.
void EStackPool::dismiss_locked(EStack& estack, ServedAStack& astack) noexcept {
  estack.leave_.store(true);
  shim::unpark_estack(*astack.head);
  astack.summons.raise(1);
}

bool EStackPool::is_wanted(const EStack& estack) {
  std::lock_guard lock(mutex_);
  return shares_.is_wanted(estack.binding_->holder());
}

bool EStackPool::leaves_amid_calls(EStack& estack) {
  std::lock_guard lock(mutex_);
  if (leaving_amid_calls_ >= shares_.waiting() || !shares_.is_wanted(estack.binding_->holder())) return false;
  ++leaving_amid_calls_;
  return estack.leaves_amid_calls_ = true;
}

void EStackPool::dismiss(ServedBinding& binding) noexcept {
  const Holder holder = binding.holder();
  std::lock_guard lock(mutex_);
  if (shares_.waiting(holder) != 0) {
    for (ServedAStack& astack : binding.astacks()) (void)shares_.remove(holder, astack);
    binding.each_secondary([&](SecondaryRegion& region) {  // takes no copies, the last of which would unmap
      for (ServedAStack& astack : region.astacks()) (void)shares_.remove(holder, astack);
    });
  }
  shares_.dismiss(holder);
}

void EStackPool::let_go(std::span<ServedAStack> astacks) {
  std::lock_guard lock(mutex_);
  for (ServedAStack& astack : astacks) {
    (void)shares_.remove(astack.binding->holder(), astack);
    EStack* const estack = astack.estack.load();
    if (estack != nullptr) dismiss_locked(*estack, astack);
  }
}

bool EStackPool::next_assignment(EStack& estack) {
  std::unique_lock lock(mutex_);
  if (std::exchange(estack.leaves_amid_calls_, false)) --leaving_amid_calls_;
  while (estack.astack_ == nullptr) {
    if (!stop_ && !estack.spent_) {
      const auto next = take_waiting_locked();
      if (next) assign_locked(estack, next->binding, *next->astack);
      reclaim_for_refused_locked();
      if (next) break;
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
    shim::Thread before = std::exchange(last_to_end_, std::move(estack.thread_));
    std::erase_if(estacks_, [&](const auto& owned) { return owned.get() == &estack; });  // `estack` is gone
    if (shares_.any_waiting() && !stop_) ask_clerk_(0);  // it could not be used again: now there is room for a new one
    ended_.notify_all();
    lock.unlock();
    before.join();
    return false;
  }
  return true;
}

void EStackPool::supply() {
  std::lock_guard lock(mutex_);
  supply_locked();
  reclaim_for_refused_locked();  // an E-stack that could not be used again asked for this as it ended
}

void EStackPool::supply_locked() {
  while (!stop_ && (!idle_.empty() || estacks_.size() < most_estacks(options_))) {
    auto next = take_waiting_locked();
    if (!next) return;
    if (idle_.empty() && !start_locked()) {
      shares_.put_back(*std::move(next));
      // Tried again: a caller that waits for no return does not ring again.
      ask_clerk_(kNoThreadPause);
      return;
    }
    assign_idle_locked(next->binding, *next->astack);
  }
}

void EStackPool::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  shares_.clear();
  // Repeated, because a client that writes into the word as an E-stack is about to park makes it sleep all the same.
  do {
    for (const auto& estack : estacks_) {
      if (estack->astack_ != nullptr) {
        dismiss_locked(*estack, *estack->astack_);
      } else {
        estack->assigned_.notify_one();
      }
    }
  } while (!ended_.wait_for(lock, shim::kBoundedSleep, [&] { return estacks_.empty(); }));
  shim::Thread last = std::move(last_to_end_);
  lock.unlock();
  last.join();
}

bool EStackPool::runs_here() const {
  std::lock_guard lock(mutex_);
  return last_to_end_.is_this() ||
         std::ranges::any_of(estacks_, [](const auto& estack) { return estack->thread_.is_this(); });
}

void EStackPool::count(ServerStatistics& counted) const {
  std::lock_guard lock(mutex_);
  counted.estacks = estacks_.size();
  counted.estacks_associated = associated_;
  counted.estacks_reclaimed = reclaimed_;
  counted.estacks_released = released_.load(std::memory_order_relaxed);
  counted.estack_moves = moves_.load(std::memory_order_relaxed);
  counted.poller_misses = poller_misses_.load(std::memory_order_relaxed);
}

}  // namespace lrpc::server
