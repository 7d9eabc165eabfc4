#include "poller_grant.h"

#include <utility>

namespace lrpc::server {
namespace {

/// Only this thread counts there: an addition without the price of a locked one.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t more) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

bool PollerGrant::hot_call() noexcept {
  // First counted, then looked: an allocator that falls asleep says so first and then looks at the counters once more.
  page_->counters.hot_calls.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t ruling = page_->ruling.word.load(std::memory_order_seq_cst);
  if ((ruling & shim::AllocatorRuling::kAsleep) != 0) wake_allocator();
  if (shim::AllocatorRuling::pollers(ruling) != 0) return true;
  if (page_->counters.wants_poller.load(std::memory_order_relaxed) == 0) {
    page_->counters.wants_poller.store(1, std::memory_order_relaxed);
  }
  return false;
}

void PollerGrant::begin_polling() noexcept {
  page_->counters.wants_poller.store(0, std::memory_order_relaxed);
  page_->counters.polling.store(1, std::memory_order_relaxed);
}

bool PollerGrant::keep_polling(std::uint64_t hits) noexcept {
  if (hits != told_hits_) add(page_->counters.hits, hits - std::exchange(told_hits_, hits));
  const std::uint32_t ruling = word();
  if ((ruling & shim::AllocatorRuling::kAsleep) != 0) [[unlikely]]
    wake_allocator();
  return shim::AllocatorRuling::pollers(ruling) != 0;
}

void PollerGrant::end_polling(std::uint64_t hits, std::uint64_t evictions) noexcept {
  (void)keep_polling(hits);
  add(page_->counters.evictions, evictions - std::exchange(told_evictions_, evictions));
  page_->counters.polling.store(0, std::memory_order_relaxed);
}

void PollerGrant::wake_allocator() noexcept {
  // The epoch was written before the word that brought us here. Zero is a page's first; hence one more.
  const std::uint32_t epoch = page_->ruling.epoch.load(std::memory_order_acquire) + 1;
  if (woken_.exchange(epoch, std::memory_order_relaxed) != epoch) wake_();
}

Status PollerGrant::attach(UniqueFd page) {
  if (Status put = page_.put(std::move(page)); !put) return put;
  woken_.store(0, std::memory_order_relaxed);
  attached_.store(true, std::memory_order_relaxed);
  return {};
}

void PollerGrant::detach() noexcept {
  if (attached_.exchange(false, std::memory_order_relaxed)) page_.put_zeros();
}

}  // namespace lrpc::server
