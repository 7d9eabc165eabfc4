// Whether this domain may poll: what the nameserver's processor allocator says (LRPC §3.4), or the domain's own rule.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "lrpc/detail/shim/binder/allocator_page.h"

namespace lrpc::server {

/// Owns the server's end of the page that it shares with the allocator. Without a page (no nameserver, one that
/// allocates no processors, private bindings only) the domain's own rule holds.
///
/// Thread-safe as marked. Nothing here blocks but attach() and detach(), which map a page.
class PollerGrant {
 public:
  /// `wake` tells the allocator that there are calls to poll for. It is called on an E-stack or a poller, once each
  /// time that the allocator has fallen asleep, which bounds the messages to the allocator.
  explicit PollerGrant(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// On an E-stack: counts the call that it has just served, and that a poller could have served. Returns whether a
  /// poller may take the A-stack from now on.
  [[nodiscard]] bool hot_call() noexcept;
  /// On an E-stack that has just served a call on a polled A-stack.
  void missed() noexcept { page_->counters.misses.fetch_add(1, std::memory_order_relaxed); }

  // On a poller's thread.
  void begin_polling() noexcept;
  /// Reports `hits` more calls to the allocator.
  void tell_hits(std::uint64_t hits) noexcept;
  void end_polling(bool evicted) noexcept;

  // On the watcher's thread, or before it runs.
  /// Maps what a nameserver has sent as a page. If it is none, or cannot be mapped, nothing changes.
  void attach(UniqueFd page) noexcept;
  /// The nameserver is gone: its rulings no longer hold.
  void detach() noexcept;

  // Any thread, also in a fork child.
  [[nodiscard]] bool has_page() const noexcept { return attached_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t granted() const noexcept { return page_.here() ? most() : 0; }
  [[nodiscard]] std::uint32_t polling() const noexcept { return polling_.load(std::memory_order_relaxed); }
  /// How many pollers there may be, as far as the allocator rules: one relaxed load.
  [[nodiscard]] std::uint32_t most() const noexcept { return shim::AllocatorRuling::pollers(word()); }

 private:
  [[nodiscard]] std::uint32_t word() const noexcept { return page_->ruling.word.load(std::memory_order_relaxed); }
  void wake_allocator() noexcept;

  const std::function<void()> wake_;
  shim::AllocatorPageMapping page_;
  std::atomic<bool> attached_{false};
  std::atomic<std::uint32_t> woken_{0};    ///< The page's epoch in which the allocator was last woken, plus one.
  std::atomic<std::uint32_t> polling_{0};  ///< Pollers that poll now.
};

}  // namespace lrpc::server
