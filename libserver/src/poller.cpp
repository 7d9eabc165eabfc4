#include "poller.h"

#include <algorithm>
#include <utility>

#include "call_path.h"
#include "lrpc/shim/asymmetric_fence.h"
#include "lrpc/shim/cancellation.h"
#include "lrpc/shim/futex.h"
#include "lrpc/shim/processor.h"
#include "lrpc/shim/step.h"
#include "stack.h"
#include "to_ticks.h"

namespace lrpc::server {
namespace {

/// Scans between two looks at the clock.
constexpr int kScansPerLook = 64;
/// A gap between two looks that may mean that the thread was switched out: then the kernel is asked.
constexpr std::uint64_t kEvictionGapUs = 100;
/// A procedure that takes longer keeps the others of the hot set waiting for more than a wake-up costs. Twice in a row,
/// and its A-stack is left to its E-stack for a hundred times as long.
constexpr std::uint64_t kSlowUs = 20;
constexpr std::uint64_t kSlowFactor = 100;
/// How long an A-stack whose caller shares our processor is left alone.
constexpr std::uint64_t kCrowdedBackOffUs = 10'000;
/// After an eviction: how long not to poll at all, doubling; and, if there seem to be more threads than processors, not
/// for kCrowdedUs; but however that looks (the others may not be in our way), again after kThirdPartyFactor times what
/// we have polled: so who shares a processor with us loses a twentieth of it at most.
constexpr std::uint64_t kFirstBackOffUs = 2'000;
constexpr std::uint64_t kLastBackOffUs = 64'000;
constexpr std::uint64_t kCrowdedUs = 5'000;
constexpr std::uint64_t kThirdPartyFactor = 20;
constexpr std::uint64_t kLeastBlindUs = 20'000;
constexpr std::uint64_t kMostBlindUs = 1'000'000;
/// How long into a stint its callers have left the other gate, so that all who still run can be counted.
constexpr std::uint64_t kSettledUs = 30;
/// A stint that lasted so long without an eviction: the processor is ours again.
constexpr std::uint64_t kSoundStintUs = 20'000;
constexpr std::uint64_t kNoThreadRetryUs = 1'000'000;
/// A hot A-stack without a call for this many windows is demoted while others keep the poller busy.
constexpr std::uint64_t kColdWindows = 64;

}  // namespace

void Poller::offer(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  if (!grant_.hot_call()) return;
  if (astack.polled.exchange(true)) return;  // offered or hot already
  std::lock_guard lock(mutex_);
  if (stop_.load() || offers_.size() >= kHotSet || !start_locked()) {
    astack.polled.store(false);
    return;
  }
  // P1: the offer lies there before it is counted, and is counted before the wake-up.
  offers_.push_back({.binding = binding, .astack = &astack, .last_hit = shim::ticks()});
  offered_.fetch_add(1, std::memory_order_release);
  shim::futex_wake_private(offered_, 1);
}

bool Poller::start_locked() {
  if (thread_.running()) return true;
  if (thread_.start(procedure_thread("lrpc-poller", stack_size_), &Poller::thread_main, this)) return true;
  // The system is out of threads or memory: the E-stacks serve all calls, and we ask again later.
  not_before_.store(shim::ticks() + to_ticks(kNoThreadRetryUs), std::memory_order_relaxed);
  return false;
}

void* Poller::thread_main(void* poller) {
  const shim::NoCancellation never;  // a procedure must not take the poller along
  static_cast<Poller*>(poller)->run();
  return nullptr;
}

void Poller::stop() {
  {
    std::lock_guard lock(mutex_);  // P5
    stop_.store(true);
    offered_.fetch_add(1, std::memory_order_release);
    shim::futex_wake_private(offered_, 1);
  }
  if (thread_.running()) thread_.join();
  std::lock_guard lock(mutex_);
  offers_.clear();
}

void Poller::run() {
  // The E-stack that started us may sit on its caller's processor, the one place where polling makes no sense.
  processors_.spread_this_thread();
  while (!stop_.load(std::memory_order_acquire)) {
    take_offers(shim::ticks());
    if (hot_count_ == 0) {
      wait_for_offers();
      continue;
    }
    if (shim::ticks() < not_before_.load(std::memory_order_relaxed)) {  // offered before the back-off began
      cool_down(Why::crowded);
      continue;
    }
    // While we are under suspicion of being in somebody's way: who would run beside us? (A caller and its E-stack that
    // hand one processor to and fro count as two.)
    const std::uint64_t began = shim::ticks();
    grant_.begin_polling();
    const Why why = looks_crowded(1) ? Why::crowded : poll();
    cool_down(why);
    back_off(why, shim::ticks() - began);
    grant_.end_polling(hits(), evictions());
  }
}

void Poller::wait_for_offers() {
  // P3: offers_seen_ was read before the offers were taken: one that came since makes the futex return at once. So does a
  // stop that came since; one that is counted already is seen here, for the count was raised behind it.
  if (stop_.load(std::memory_order_acquire)) return;
  (void)shim::futex_wait_private(offered_, offers_seen_, std::chrono::nanoseconds(-1));
}

void Poller::take_offers(std::uint64_t now) {
  offers_seen_ = offered_.load(std::memory_order_acquire);  // P2: before the offers are taken
  std::vector<Hot> taken;
  {
    std::lock_guard lock(mutex_);
    taken.swap(offers_);
  }
  for (Hot& offer : taken) {
    if (hot_count_ == kHotSet || offer.binding->revoked()) {
      offer.astack->polled.store(false);
      continue;
    }
    offer.last_hit = now;
    offer.astack->head->polled.store(1, std::memory_order_release);
    hot_[hot_count_++] = std::move(offer);
  }
  if (hot_count_ != 0 && !remembered_.empty()) take_back_remembered(now);
}

void Poller::take_back_remembered(std::uint64_t now) {
  for (const Remembered& one : remembered_) {
    auto binding = one.binding.lock();
    if (binding == nullptr || binding->revoked() || hot_count_ == kHotSet) continue;
    if (now < one.astack->not_before.load(std::memory_order_relaxed) || one.astack->polled.exchange(true)) continue;
    one.astack->head->polled.store(1, std::memory_order_release);
    hot_[hot_count_++] = {.binding = std::move(binding), .astack = one.astack, .last_hit = now};
  }
  remembered_.clear();
}

bool Poller::shares_processor_with_caller() const noexcept {
  const std::uint16_t caller = context_.caller_processor();
  return caller < CPU_SETSIZE && caller == shim::current_processor();
}

bool Poller::took_too_long(ServedAStack& astack, std::uint64_t now) noexcept {
  if (now - mark_ <= to_ticks(kSlowUs)) [[likely]] {
    astack.slow = 0;
    return false;
  }
  // Our own time only: not what somebody else had the processor for.
  if (const std::uint64_t times = shim::involuntary_switches(); times != slow_looked_) {
    slow_looked_ = times;
    return false;
  }
  if (++astack.slow < 2) return false;
  astack.slow = 0;
  astack.not_before.store(now + std::max(kSlowFactor * (now - mark_), to_ticks(kCrowdedBackOffUs)),
                          std::memory_order_relaxed);
  return true;
}

bool Poller::scan(std::uint64_t& last_hit) {
  bool hit = false;
  for (std::size_t i = 0; i < hot_count_;) {
    ServedAStack& astack = *hot_[i].astack;
    // So that the next word is on its way while this call is served: its claim and return would wait for no load behind
    // them.
    if (i + 1 < hot_count_) __builtin_prefetch(hot_[i + 1].astack->head);
    if (serve<Scanner::poller>(astack, context_) == Served::nothing) {
      ++i;
      continue;
    }
    hit = true;
    const std::uint64_t now = shim::ticks();
    hot_[i].last_hit = last_hit = now;
    hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    const bool slow = took_too_long(astack, now);
    mark_ = now;
    if (shares_processor_with_caller()) [[unlikely]] {
      // For this caller we are on no idle processor: polling only keeps it from calling. It says so itself, so it is
      // the one that pays: only its A-stack goes.
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

/// For a caller that has just rung. After the fence one that still saw the hint has its call seen here; one that did
/// not wakes the E-stack itself (T4).
void Poller::last_look(const Hot& hot) {
  LRPC_STEP("poller last look");
  (void)serve<Scanner::poller>(*hot.astack, context_);
  hot.astack->polled.store(false);  // P4: may be offered again
}

void Poller::demote(std::size_t index) {
  hot_[index].astack->head->polled.store(0, std::memory_order_seq_cst);
  shim::heavy_shared_fence();
  drop(index);
  mark_ = shim::ticks();  // what this took is not the next call's time
}

/// Out of the hot set, once the hint is off and the fence behind it.
void Poller::drop(std::size_t index) {
  Hot& hot = hot_[index];
  last_look(hot);
  --hot_count_;
  if (index != hot_count_) hot = std::move(hot_[hot_count_]);
  hot_[hot_count_] = {};
}

void Poller::drop_cold(std::uint64_t now) {
  const std::uint64_t cold = to_ticks(kColdWindows * static_cast<std::uint64_t>(window_.count()));
  const auto is_cold = [&](const Hot& hot) { return hot.binding->revoked() || now - hot.last_hit >= cold; };
  bool any = false;
  for (std::size_t i = 0; i < hot_count_; ++i) {
    if (!is_cold(hot_[i])) continue;
    hot_[i].astack->head->polled.store(0, std::memory_order_seq_cst);
    hot_[i].cold = any = true;
  }
  if (!any) return;
  shim::heavy_shared_fence();  // one for all of them
  for (std::size_t i = 0; i < hot_count_;) {
    if (hot_[i].cold) {
      drop(i);
    } else {
      ++i;
    }
  }
  mark_ = shim::ticks();
}

bool Poller::looks_crowded(unsigned spare) const noexcept {
  if (back_off_ == 0 || shim::ticks() >= blind_before_) return false;
  const auto runnable = shim::runnable_threads();
  return runnable && *runnable > shim::online_processors() + spare;
}

Poller::Why Poller::poll() {
  const std::uint64_t window = to_ticks(static_cast<std::uint64_t>(window_.count()));
  const std::uint64_t gap = to_ticks(kEvictionGapUs);
  const std::uint64_t began = shim::ticks();
  const std::uint64_t settled = began + to_ticks(kSettledUs);
  std::uint64_t switched_out = shim::involuntary_switches();
  bool settled_looked = false;
  std::uint64_t looked = began;
  std::uint64_t last_hit = began;
  mark_ = began;
  for (;;) {
    for (int i = 0; i < kScansPerLook; ++i) {
      if (!scan(last_hit)) shim::poll_delay();
    }
    const std::uint64_t now = shim::ticks();
    mark_ = now;
    if (now - looked > gap) [[unlikely]] {
      // Calls that took so long, or a processor taken away? The kernel counts. With an offer it was one of our own
      // E-stacks that ran here: it brings work.
      const std::uint64_t times = shim::involuntary_switches();
      const bool own = offered_.load(std::memory_order_relaxed) != offers_seen_;
      if (times != switched_out && !own) return Why::evicted;
      switched_out = times;
    }
    looked = now;
    if (!grant_.keep_polling(hits()) || stop_.load(std::memory_order_relaxed)) return Why::idle;
    if (hot_count_ == 0 || now - last_hit > window) return Why::idle;
    if (!settled_looked && now > settled) [[unlikely]] {
      settled_looked = true;
      if (looks_crowded(0)) return Why::crowded;
    }
    if (back_off_ != 0 && now - began > to_ticks(kSoundStintUs)) back_off_ = 0;
    if (offered_.load(std::memory_order_relaxed) != offers_seen_) take_offers(now);
    drop_cold(now);
  }
}

void Poller::back_off(Why why, std::uint64_t polled) {
  const std::uint64_t now = shim::ticks();
  switch (why) {
    case Why::idle: return;
    case Why::evicted:
      evictions_.store(evictions_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      back_off_ = std::clamp(back_off_ * 2, to_ticks(kFirstBackOffUs), to_ticks(kLastBackOffUs));
      blind_before_ = now + std::clamp(kThirdPartyFactor * polled, to_ticks(kLeastBlindUs), to_ticks(kMostBlindUs));
      not_before_.store(now + back_off_, std::memory_order_relaxed);
      return;
    case Why::crowded: not_before_.store(now + to_ticks(kCrowdedUs), std::memory_order_relaxed); return;
  }
}

void Poller::cool_down(Why why) {
  for (std::size_t i = 0; i < hot_count_; ++i) {
    hot_[i].astack->head->polled.store(0, std::memory_order_seq_cst);
  }
  shim::heavy_shared_fence();
  remembered_.clear();
  for (std::size_t i = 0; i < hot_count_; ++i) {
    last_look(hot_[i]);
    if (why == Why::idle && !hot_[i].binding->revoked()) remembered_.push_back({hot_[i].binding, hot_[i].astack});
    hot_[i] = {};
  }
  hot_count_ = 0;
}

}  // namespace lrpc::server
