#include "poller.h"

#include <sched.h>

#include <algorithm>
#include <new>
#include <utility>

#include "call/call_path.h"
#include "call/stack.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"
#include "lrpc/detail/shim/system/processor.h"
#include "poller_team.h"
#include "to_ticks.h"

namespace lrpc::server {

/// Scans between two looks at the clock.
constexpr unsigned kScansPerLook = 64;
/// A longer gap between two looks may mean that the thread was switched out: then the kernel is asked.
constexpr std::uint64_t kGapUs = 50;
/// A procedure that takes longer makes the other A-stacks of the hot set wait for more than a wake-up costs. After two
/// in a row, its A-stack is left to its E-stack for a hundred times as long, at least 10 ms, at most a minute.
constexpr std::uint64_t kSlowUs = 20;
constexpr std::uint64_t kSlowFactor = 100;
/// How long an A-stack is not polled after its caller has come to the last processor that was left to poll on.
constexpr std::uint64_t kCrowdedBackOffUs = 10'000;
constexpr std::uint64_t kNoThreadRetryUs = 1'000'000;
/// If the kernel has refused to fence for our callers, too, it is asked again after this time. Until then, callers
/// fence for themselves.
constexpr std::uint64_t kAskAgainUs = 1'000'000;

void Poller::take_over(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  std::lock_guard lock(mutex_);
  if (offered_.stopped() || offers_.size() >= kHotSet || !start_locked()) {
    astack.polled.store(Polled::no);
    return;
  }
  astack.poller.store(index_, std::memory_order_relaxed);
  offers_.push_back({.binding = binding, .astack = &astack, .last_hit = shim::ticks()});
  offered_.raise(1);  // P1
}

bool Poller::start_locked() {
  if (thread_.running()) return true;
  try {
    offers_.reserve(kHotSet);
    taken_.reserve(kHotSet);
    remembered_.reserve(kHotSet);
    if (thread_.start<&Poller::run>(procedure_thread("lrpc-poller", stack_size_), this)) return true;
  } catch (const std::bad_alloc&) {
  }
  // The system is out of threads or memory: the E-stacks serve all calls, and a later offer tries again.
  not_before_.store(shim::ticks() + to_ticks(kNoThreadRetryUs), std::memory_order_relaxed);
  return false;
}

void Poller::stop() {
  {
    std::lock_guard lock(mutex_);
    offered_.stop();  // P5
  }
  if (thread_.running()) thread_.join();
  std::lock_guard lock(mutex_);
  offers_.clear();
}

void Poller::run() {
  while (!offered_.stopped()) {
    take_offers(shim::this_moment());
    if (hot_count_ == 0) {
      offered_.sleep_unless_changed(offers_seen_);  // P3
    } else if (!takes_offers(shim::this_moment())) {
      cool_down();  // offered before the back-off began
    } else if (take_seat() || begin_as_guest()) {
      stint();
    } else {
      const shim::Moment now = shim::this_moment();
      not_before_.store(now.after(CallerProcessors::kRecentUs), std::memory_order_relaxed);
      if (index_ != 0) team_.helper_ended(0, now);
      cool_down();  // callers run on all processors
    }
  }
}

/// Moves off the processors that callers run on: the E-stack that woke us runs beside one, where polling makes no
/// sense. And off those of the other pollers. False: there is no other. say_all_polled() then tells the callers where
/// the poller is.
bool Poller::take_seat() noexcept {
  const shim::Moment now = shim::this_moment();
  processors_.refresh(now.ticks);
  return processors_.keep_this_thread_off([&](std::uint16_t processor) { return team_.taken(processor, this, now); });
}

/// H4. Only within a stint.
void Poller::say_polled(ServedAStack& astack) const noexcept {
  shim::PolledHint hint(seat(), policy_.stint(), policy_.turn());
  if (!promised_) hint = hint.without_fence();
  if (guest_) hint = hint.as_guest();
  astack.head->polled.store(hint.bits(), std::memory_order_release);
}

/// Between taking a hint back and the last look. It serves the callers, too, unless the hint has told them to fence.
void Poller::fence() noexcept {
  if (shim::fence_before_last_look(promised_) || !promised_) return;
  fences_ = false;
  ask_again_ = shim::this_moment().after(kAskAgainUs);
}

/// Whether the poller's fence serves the callers, too, in this stint. The kernel may refuse that for want of memory, or
/// for good (a filter), so it is asked again now and then.
bool Poller::can_promise() noexcept {
  if (fences_) return true;
  const shim::Moment now = shim::this_moment();
  if (now.before(ask_again_)) return false;
  fences_ = shim::can_fence_shared();
  ask_again_ = now.after(kAskAgainUs);
  return fences_;
}

void Poller::say_all_polled(std::uint16_t processor) noexcept {
  seat_.store(processor, std::memory_order_relaxed);
  for (std::size_t i = 0; i < hot_count_; ++i) say_polled(*hot_[i].astack);
}

/// H5: a caller says that it is on the poller's processor. False: the poller cannot move, or has moved only just now.
bool Poller::step_aside(ServedAStack& astack) noexcept {
  const shim::Moment now = shim::this_moment();
  team_.called_from(astack, context_.caller_processor(), now);
  if (!policy_.may_step_aside(now) || !take_seat()) return false;
  say_all_polled();
  mark_ = shim::ticks();  // this time does not count for the next call
  return true;
}

/// Between two scans; `calls`: those since the last time. False: the stint is over.
bool Poller::keep_seat(std::uint64_t calls, shim::Moment now) noexcept {
  if (has_to_pay_ && !go_on_if_it_pays(calls, now)) return false;
  if (guest_) return shim::current_processor() == host_;  // else somebody has moved us
  // The scheduler has moved us, or somebody has (taskset), or another poller has come here at the same time.
  if (shim::current_processor() != seat() || team_.another_sits_on(seat(), index_)) [[unlikely]] {
    if (!take_seat()) return false;
    say_all_polled();
  } else if (team_.caller_on(seat(), now) && policy_.may_step_aside(now) && take_seat()) {
    say_all_polled();  // H5, for a caller that another poller serves
  }
  return true;
}

bool Poller::shares_processor_with_caller() const noexcept {
  const std::uint16_t caller = context_.caller_processor();
  return shim::is_processor(caller) && caller == shim::current_processor();
}

bool Poller::took_too_long(ServedAStack& astack, std::uint64_t now) noexcept {
  if (now <= mark_ + to_ticks(kSlowUs)) [[likely]] {
    astack.slow = 0;
    return false;
  }
  // Only the procedure's own time counts, not the time for which another thread had the processor.
  if (const std::uint64_t times = shim::involuntary_switches(); times != slow_looked_) {
    slow_looked_ = times;
    return false;
  }
  if (++astack.slow < 2) return false;
  astack.slow = 0;
  const std::uint64_t alone = std::max(kSlowFactor * (now - mark_), to_ticks(kCrowdedBackOffUs));
  astack.not_before.store(now + std::min(alone, to_ticks(shim::Moment::kFarUs)), std::memory_order_relaxed);
  return true;
}

/// H14: a guest leaves calls that were rung on its host's processor to serve_host().
bool Poller::leaves_host_waiting(const ServedAStack& astack) const noexcept {
  return guest_ && !serves_host_ && shim::load_word(*astack.head).processor() == host_;
}

/// H12: at most one call of each A-stack, so that no client keeps us from the others.
bool Poller::scan(std::uint64_t& last_hit) {
  bool hit = false;
  for (std::size_t i = 0; i < hot_count_;) {
    ServedAStack& astack = *hot_[i].astack;
    // Fetches the next word while this call is served: the load would not begin before this call's claim and return.
    if (i + 1 < hot_count_) __builtin_prefetch(hot_[i + 1].astack->head);
    if (leaves_host_waiting(astack) || serve<Scanner::poller>(astack, context_) == Served::nothing) {
      ++i;
      continue;
    }
    hit = true;
    const std::uint64_t now = shim::ticks();
    hot_[i].last_hit = last_hit = now;
    hot_[i].caller = context_.caller_processor();
    hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool slow = took_too_long(astack, now);
    mark_ = now;
    if (!guest_ && shares_processor_with_caller() && !step_aside(astack) && !stay_as_guest()) [[unlikely]] {
      // H5: the poller is on this caller's processor, and there is none to move to, or it has moved only just now:
      // polling here only keeps the caller from calling. The caller may lie, so only its own A-stack leaves.
      astack.not_before.store(now + to_ticks(kCrowdedBackOffUs), std::memory_order_relaxed);
      demote(i);
    } else if (slow) [[unlikely]] {
      demote(i);
    } else {
      ++i;
    }
  }
  return hit;
}

void Poller::stint() {
  policy_.begin(shim::this_moment(), guest_);
  polling_ = true;
  promised_ = can_promise();
  say_all_polled();
  polls_.store(true, std::memory_order_relaxed);
  grant_.begin_polling();
  poll();
  polling_ = false;
  const bool evicted = policy_.evicted();
  if (evicted) evictions_.store(evictions_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const shim::Moment now = shim::this_moment();
  if (const std::uint64_t next = std::max(policy_.end(now), be_nobodys_guest()); next != 0)
    not_before_.store(next, std::memory_order_relaxed);
  if (evicted && index_ != 0) team_.helper_ended(policy_.lasted_us(now), now);
  cool_down();
  polls_.store(false, std::memory_order_relaxed);
  seat_.store(shim::kNoProcessor, std::memory_order_relaxed);
  has_room_.store(false, std::memory_order_relaxed);
  tell_hits();
  grant_.end_polling(evicted);
}

void Poller::tell_hits() noexcept {
  const std::uint64_t all = hits();
  grant_.tell_hits(all - std::exchange(told_hits_, all));
}

void Poller::poll() {
  const auto window = static_cast<std::uint64_t>(window_.count());
  const std::uint64_t yield_ticks = to_ticks(PollerPolicy::kYieldUs);
  std::uint64_t last_hit = shim::ticks();
  std::uint64_t hits_seen = hits();
  mark_ = last_hit;
  context_.note_clock();
  count_anew(shim::this_moment());
  load_.begin(shim::this_moment());
  noted_ = last_hit;
  for (std::uint64_t looked = last_hit;; looked = mark_) {
    // Ends after kYieldUs, too, because scans with calls take longer than empty ones: a thread that wants the processor
    // then waits for no more than one scan.
    PollerLook look;
    for (; look.scans < kScansPerLook && mark_ - looked < yield_ticks; ++look.scans) {
      if (scan(last_hit)) continue;
      shim::poll_delay();
      ++look.empty;
    }
    const shim::Moment now = shim::this_moment();
    mark_ = now.ticks;
    if (now.since(looked) > kGapUs) [[unlikely]]
      note_gap(now.since(looked), now);
    context_.note_clock(now);
    if (policy_.yield_due(now)) offer_processor();
    tell_hits();
    if (policy_.evicted() || !team_.may_poll(index_) || offered_.stopped()) return;
    if (hot_count_ == 0 || (!guest_ && now.since(last_hit) > window)) return;
    if (fences_ != promised_) return;  // the kernel refuses by now (a filter): the hints say what does not hold
    look.ticks = now.ticks - looked;
    look.calls = hits() - std::exchange(hits_seen, hits());
    if (look.calls != 0) note_callers(last_hit, now);  // the last caller
    processors_.refresh(now.ticks);
    if (!keep_seat(look.calls, now)) return;
    if (load_.looked(look, now)) balance(now);
    if (offered_.changed_since(offers_seen_)) take_offers(now);
    drop_cold(now);
  }
}

/// Long calls, or a processor taken away? The kernel has counted this thread's processor time. If an offer has come,
/// one of our own E-stacks ran here and brings work: that is no loss.
void Poller::note_gap(std::uint64_t us, shim::Moment now) noexcept {
  const std::uint64_t passed = now.since(counted_);
  const std::uint64_t had_before = counted_us_;
  count_anew(now);
  const std::uint64_t had = counted_us_ - had_before;
  const bool own = offered_.changed_since(offers_seen_);
  if (passed > had && !own) policy_.others_had(std::min(us, passed - had), now);
}

void Poller::count_anew(shim::Moment now) noexcept {
  counted_ = now.ticks;
  counted_us_ = shim::thread_microseconds();
}

/// Notes the processors of the callers that have called since then.
void Poller::note_callers(std::uint64_t since, shim::Moment now) noexcept {
  for (std::size_t i = 0; i < hot_count_; ++i) {
    if (hot_[i].last_hit >= since) team_.called_from(*hot_[i].astack, hot_[i].caller, now);
  }
}

void Poller::offer_processor() noexcept {
  if (guest_) serve_host();
  const std::uint64_t began = shim::ticks();
  sched_yield();
  const shim::Moment now = shim::this_moment();
  policy_.yielded(now.since(began), now);
  if (policy_.turns(hits())) say_all_polled();
  mark_ = now.ticks;
  if (now.since(began) < 2) return;
  slow_looked_ = shim::involuntary_switches();  // the kernel counts a yield to somebody as one
  count_anew(now);
}

}  // namespace lrpc::server
