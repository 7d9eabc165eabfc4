#include "poller.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "call_path.h"
#include "lrpc/shim/futex.h"
#include "lrpc/shim/processor.h"

namespace lrpc::server {
namespace {

/// Scans between two looks at the clock.
constexpr int kScansPerLook = 64;
/// A gap between two looks, none of whose scans had a hit, that shows that the thread was switched out.
constexpr std::uint64_t kEvictionGapUs = 100;
constexpr std::uint64_t kFirstBackOffUs = 2'000;
constexpr std::uint64_t kLastBackOffUs = 1'000'000;
/// A hot A-stack without a call for this many windows is demoted while others keep the poller busy.
constexpr std::uint64_t kColdWindows = 8;

std::uint64_t to_ticks(std::uint64_t us) { return us * shim::ticks_per_microsecond(); }

}  // namespace

void Poller::offer(const std::shared_ptr<ServedBinding>& binding, ServedAStack& astack) {
  if (astack.polled.exchange(true)) return;  // offered or hot already
  std::lock_guard lock(mutex_);
  if (stop_.load() || offers_.size() >= kHotSet) {
    astack.polled.store(false);
    return;
  }
  offers_.push_back({binding, &astack, shim::ticks()});
  offered_.fetch_add(1, std::memory_order_release);
  if (!thread_.joinable()) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { run(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_setname_np(thread_.native_handle(), "lrpc-poller");
  } else {
    shim::futex_wake_private(offered_, 1);
  }
}

void Poller::stop() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
    offered_.fetch_add(1, std::memory_order_release);
    shim::futex_wake_private(offered_, 1);
  }
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mutex_);
  offers_.clear();
}

void Poller::run() {
  // The E-stack that started us may sit on its caller's processor, the one place where polling makes no sense.
  sched_setaffinity(0, sizeof processors_, &processors_);
  while (!stop_.load(std::memory_order_acquire)) {
    take_offers(shim::ticks());
    if (hot_count_ == 0) {
      wait_for_offers();
      continue;
    }
    cool_down(poll());
  }
}

void Poller::wait_for_offers() {
  // offers_seen_ was read before the offers were taken: one that came since makes the futex return at once.
  (void)shim::futex_wait_private(offered_, offers_seen_, std::chrono::nanoseconds(-1));
}

void Poller::take_offers(std::uint64_t now) {
  offers_seen_ = offered_.load(std::memory_order_acquire);
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
}

bool Poller::scan(std::uint64_t& last_hit) {
  bool hit = false;
  for (std::size_t i = 0; i < hot_count_; ++i) {
    if (serve<Scanner::poller>(*hot_[i].astack, context_) != Served::returned) continue;
    hot_[i].last_hit = last_hit = shim::ticks();
    hits_.store(hits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    hit = true;
    // The caller says it is on our own processor: then this is no idle processor, and polling only keeps it from calling.
    crowded_ = context_.caller_processor() == shim::current_processor() && context_.caller_processor() != shim::kNoProcessor;
  }
  return hit;
}

void Poller::drop_cold(std::uint64_t now) {
  const std::uint64_t cold = to_ticks(kColdWindows * static_cast<std::uint64_t>(window_.count()));
  for (std::size_t i = 0; i < hot_count_;) {
    Hot& hot = hot_[i];
    if (!hot.binding->revoked() && now - hot.last_hit < cold) {
      ++i;
      continue;
    }
    hot.astack->head->polled.store(0, std::memory_order_release);
    hot.astack->polled.store(false);
    hot = std::move(hot_[--hot_count_]);
    hot_[hot_count_] = {};
  }
}

Poller::Why Poller::poll() {
  const std::uint64_t window = to_ticks(static_cast<std::uint64_t>(window_.count()));
  const std::uint64_t gap = to_ticks(kEvictionGapUs);
  std::uint64_t looked = shim::ticks();
  std::uint64_t last_hit = looked;
  crowded_ = false;
  for (;;) {
    bool hit = false;
    for (int i = 0; i < kScansPerLook; ++i) {
      if (scan(last_hit)) {
        hit = true;
        if (crowded_) return Why::crowded;
      } else {
        shim::poll_delay();
      }
    }
    const std::uint64_t now = shim::ticks();
    if (!hit && now - looked > gap) return Why::evicted;
    looked = now;
    if (now - last_hit > window || stop_.load(std::memory_order_relaxed)) return Why::idle;
    if (offered_.load(std::memory_order_relaxed) != offers_seen_) take_offers(now);
    drop_cold(now);
  }
}

void Poller::cool_down(Why why) {
  if (why != Why::idle) {
    evictions_.store(evictions_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    back_off_us_ = std::clamp(back_off_us_ * 2, kFirstBackOffUs, kLastBackOffUs);
    not_before_.store(shim::ticks() + to_ticks(back_off_us_), std::memory_order_relaxed);
  }
  if (why == Why::idle) back_off_us_ = 0;
  for (std::size_t i = 0; i < hot_count_; ++i) {
    hot_[i].astack->head->polled.store(0, std::memory_order_seq_cst);
    // One last look: a caller that still saw the hint has rung before this, or will not find it set any more.
    (void)serve<Scanner::poller>(*hot_[i].astack, context_);
    hot_[i].astack->polled.store(false);
    hot_[i] = {};
  }
  hot_count_ = 0;
}

}  // namespace lrpc::server
