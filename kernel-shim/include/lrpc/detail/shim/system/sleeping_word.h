// A word on which threads of this process sleep until there is news, or never will be any more.
#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::shim {

/// Counts news, with a stop beside the count. Who waits looks at the word (P2), then for the news themselves, then
/// sleeps on what it has seen (P3). No raise() or stop() after that look is slept through, and a stopped word is not
/// slept on at all. If several sleep on it, one that was woken and does not take the news raises again.
///
/// Any thread may do anything at any time. All is sequentially consistent, except for changed_since(), which orders
/// nothing. Not for a word that is the news itself (CancellationWord, netrpc's HandlerThreads): that counts nothing.
class SleepingWord {
 public:
  /// P2
  [[nodiscard]] std::uint32_t look() const noexcept { return word_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool changed_since(std::uint32_t seen) const noexcept {
    return word_.load(std::memory_order_relaxed) != seen;
  }
  [[nodiscard]] bool stopped() const noexcept { return (look() & kStop) != 0; }
  /// P1: the news lie there by now. Wakes at most so many.
  void raise(int sleepers = INT_MAX) noexcept {
    word_.fetch_add(kNews, std::memory_order_seq_cst);
    futex_wake_private(word_, sleepers);
  }
  /// P5: for good. Wakes all.
  void stop() noexcept {
    word_.fetch_or(kStop, std::memory_order_seq_cst);
    futex_wake_private(word_, INT_MAX);
  }
  /// P3, at most `limit` (forever if negative). Spurious returns happen: look again.
  void sleep_unless_changed(std::uint32_t seen,
                            std::chrono::nanoseconds limit = std::chrono::nanoseconds(-1)) noexcept {
    (void)futex_wait_private(word_, seen & ~kStop, limit);
  }
  /// P3, on other words, too: for futex_wait_any().
  [[nodiscard]] FutexWait unless_changed(std::uint32_t seen) const noexcept { return {&word_, seen & ~kStop}; }

 private:
  /// In one word, so that a stop changes it, and no look falls between the two. What is seen of a stop is not slept on.
  enum : std::uint32_t { kStop = 1, kNews = 2 };
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace lrpc::shim
