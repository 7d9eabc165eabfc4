// A word on which threads of this process sleep until there is news, or until it is stopped.
#pragma once

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>

#include "lrpc/detail/shim/system/futex.h"

namespace lrpc::shim {

/// Counts news; one bit of the word says that it is stopped. A waiting thread looks at the word (P2), then for the news
/// themselves, then sleeps on the value that it has seen (P3). It does not sleep through a raise() or stop() that comes
/// after its look, and never sleeps on a stopped word. If several threads sleep on it, one that was woken and does not
/// take the news must raise again.
///
/// Thread-safe. All is sequentially consistent, except for changed_since(), which orders nothing. Not for a word that
/// is itself the news (CancellationWord, netrpc's HandlerThreads): such a word counts nothing.
class SleepingWord {
 public:
  /// P2
  [[nodiscard]] std::uint32_t look() const noexcept { return word_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool changed_since(std::uint32_t seen) const noexcept {
    return word_.load(std::memory_order_relaxed) != seen;
  }
  [[nodiscard]] bool stopped() const noexcept { return (look() & kStop) != 0; }
  /// P1: call it after the news are in place. Wakes at most `sleepers`.
  void raise(int sleepers = INT_MAX) noexcept {
    word_.fetch_add(kNews, std::memory_order_seq_cst);
    futex_wake_private(word_, sleepers);
  }
  /// The same without a system call, for news that nobody may be sleeping for. A caller that finds sleepers must raise.
  void count() noexcept { word_.fetch_add(kNews, std::memory_order_seq_cst); }
  /// P5: stops the word for ever. Wakes all.
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
  /// Both in one word: a stop changes the word, and one look sees both. The value to sleep on never has the stop bit.
  enum : std::uint32_t { kStop = 1, kNews = 2 };
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace lrpc::shim
