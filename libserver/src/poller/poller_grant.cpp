#include "poller_grant.h"

#include <new>
#include <utility>

namespace lrpc::server {

bool PollerGrant::hot_call() noexcept {
  // Count first, then read: an allocator that falls asleep says so first, and then reads the counters once more.
  page_->counters.hot_calls.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t ruling = page_->ruling.word.load(std::memory_order_seq_cst);
  if ((ruling & shim::AllocatorRuling::kAsleep) != 0) wake_allocator();
  if (shim::AllocatorRuling::pollers(ruling) != 0) return true;
  if (page_->counters.wants_poller.load(std::memory_order_relaxed) == 0)
    page_->counters.wants_poller.store(1, std::memory_order_relaxed);
  return false;
}

void PollerGrant::begin_polling() noexcept {
  page_->counters.wants_poller.store(0, std::memory_order_relaxed);
  polling_.fetch_add(1, std::memory_order_relaxed);
  page_->counters.polling.store(1, std::memory_order_relaxed);
}

void PollerGrant::tell_hits(std::uint64_t hits) noexcept {
  if (hits != 0) page_->counters.hits.fetch_add(hits, std::memory_order_relaxed);
  // A poller that ended during our begin_polling() may have stored 0 after it.
  if (page_->counters.polling.load(std::memory_order_relaxed) == 0) [[unlikely]]
    page_->counters.polling.store(1, std::memory_order_relaxed);
  if ((word() & shim::AllocatorRuling::kAsleep) != 0) [[unlikely]]
    wake_allocator();
}

void PollerGrant::end_polling(bool evicted) noexcept {
  if (evicted) page_->counters.evictions.fetch_add(1, std::memory_order_relaxed);
  if (polling_.fetch_sub(1, std::memory_order_relaxed) == 1)
    page_->counters.polling.store(0, std::memory_order_relaxed);
}

void PollerGrant::wake_allocator() noexcept {
  // The epoch was written before the word that brought us here. Epochs begin with 0, which here means never: hence + 1.
  const std::uint32_t epoch = page_->ruling.epoch.load(std::memory_order_acquire) + 1;
  if (woken_.exchange(epoch, std::memory_order_relaxed) != epoch) wake_();
}

void PollerGrant::attach(UniqueFd page) noexcept try {
  if (Status put = page_.put(std::move(page)); !put) return;
  woken_.store(0, std::memory_order_relaxed);
  attached_.store(true, std::memory_order_relaxed);
} catch (const std::bad_alloc&) {
}

void PollerGrant::detach() noexcept {
  if (attached_.exchange(false, std::memory_order_relaxed)) page_.put_zeros();
}

}  // namespace lrpc::server
