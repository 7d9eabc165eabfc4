// The page that a server shares with the nameserver's processor allocator (LRPC §3.4): the server writes counters, the
// allocator rulings. No other domain maps it, and nobody sleeps on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

inline constexpr std::size_t kAllocatorPageSize = 4096;

/// A server's counters. They only increase. The allocator trusts them only as far as it can check them.
struct alignas(128) AllocatorCounters {
  std::atomic<std::uint64_t> hits{0};          ///< Calls that a poller picked up.
  std::atomic<std::uint64_t> misses{0};        ///< Calls on a polled A-stack that an E-stack had to serve.
  std::atomic<std::uint64_t> hot_calls{0};     ///< Calls served by E-stacks on A-stacks hot enough to be polled.
  std::atomic<std::uint64_t> evictions{0};     ///< Times a poller saw that it had been switched out.
  std::atomic<std::uint32_t> wants_poller{0};  ///< 1: a hot call has come since the allocator withheld pollers.
  std::atomic<std::uint32_t> polling{0};       ///< 1: a poller polls now.
};

/// The allocator's ruling: one word, which one load reads. Zero means no ruling: the server follows its own rule.
struct alignas(128) AllocatorRuling {
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kAsleep = 1U << 31;  ///< The allocator does not read the page: no ruling.
  static constexpr std::uint32_t kMostPollers = 0xfffe;
  /// A ruling that grants `pollers`, perhaps none.
  static constexpr std::uint32_t of(std::uint32_t pollers) noexcept { return 1 + pollers; }
  static constexpr bool rules(std::uint32_t word) noexcept { return (word & 0xffff) != 0; }
  /// How many pollers a word allows.
  static constexpr std::uint32_t pollers(std::uint32_t word) noexcept {
    return rules(word) ? (word & 0xffff) - 1 : kMostPollers;
  }

  std::atomic<std::uint32_t> word{kNone};
  std::atomic<std::uint32_t> epoch{0};  ///< Times that the allocator fell asleep. Written before kAsleep.
};

struct AllocatorPage {
  AllocatorCounters counters;  ///< The server writes, the allocator reads.
  AllocatorRuling ruling;      ///< The allocator writes, the server reads.
};
static_assert(sizeof(AllocatorPage) <= kAllocatorPageSize);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// A private copy of the counters: each was loaded once.
struct CountersCopy {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t hot_calls = 0;
  std::uint64_t evictions = 0;
  bool wants_poller = false;
  bool polling = false;
  friend bool operator==(const CountersCopy&, const CountersCopy&) = default;
};
[[nodiscard]] CountersCopy copy_counters(const AllocatorCounters& counters) noexcept;

/// Creates a page of zeros: a memfd, sealed as regions are. The caller owns the fd, and should close it when it has
/// sent it.
Result<UniqueFd> create_allocator_page();

/// A page at a fixed address: at first private zeros; later it may be replaced by a shared page, and that by another.
/// Threads that use it meanwhile see the old page or the new one, never a fault. A forked child does not inherit it.
///
/// Only one thread at a time may call put() or put_zeros().
class AllocatorPageMapping {
 public:
  AllocatorPageMapping() noexcept;
  AllocatorPageMapping(const AllocatorPageMapping&) = delete;
  AllocatorPageMapping& operator=(const AllocatorPageMapping&) = delete;
  ~AllocatorPageMapping();

  /// Checks the seals and size of a page that another domain has sent, maps it here, and closes the descriptor.
  /// bad_message if it is no such page; then the old page stays. After a system_error the page is zeros.
  Status put(UniqueFd fd);
  /// Replaces the page by private zeros. Needs no memory.
  void put_zeros() noexcept;

  [[nodiscard]] AllocatorPage& operator*() const noexcept { return *page_; }
  [[nodiscard]] AllocatorPage* operator->() const noexcept { return page_; }
  /// False in a forked child, where the address has no page.
  [[nodiscard]] bool here() const noexcept { return owner_ == this_process(); }

 private:
  AllocatorPage* page_;             ///< Constant from construction.
  AllocatorPage* spare_ = nullptr;  ///< Zeros for put_zeros(); there whenever a shared page is mapped.
  AllocatorPage unmapped_;          ///< Used if there was no memory for a mapping: then nothing can be put.
  ProcessNumber owner_;
};

}  // namespace lrpc::shim
