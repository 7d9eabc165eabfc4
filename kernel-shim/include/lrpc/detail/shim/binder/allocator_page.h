// The page that a server shares with the nameserver's processor allocator (LRPC §3.4): the server's counters one way,
// the allocator's rulings the other. Pairwise: no other domain maps it, and nobody ever sleeps on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/fork.h"

namespace lrpc::shim {

inline constexpr std::size_t kAllocatorPageSize = 4096;

/// A server's counters. They only go up. The allocator does not trust them beyond what it can check.
struct alignas(128) AllocatorCounters {
  std::atomic<std::uint64_t> hits{0};          ///< Calls that a poller picked up.
  std::atomic<std::uint64_t> misses{0};        ///< Calls on a polled A-stack that an E-stack had to serve.
  std::atomic<std::uint64_t> hot_calls{0};     ///< Calls served by E-stacks on A-stacks hot enough to be polled.
  std::atomic<std::uint64_t> evictions{0};     ///< Times a poller saw that it had been switched out.
  std::atomic<std::uint32_t> wants_poller{0};  ///< 1: a hot call has come since the allocator withheld pollers.
  std::atomic<std::uint32_t> polling{0};       ///< 1: a poller polls now.
};

/// The allocator's ruling, in one word, which one load reads as a whole. Zero means no ruling: the server follows its
/// own rule.
struct alignas(128) AllocatorRuling {
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kAsleep = 1U << 31;  ///< The allocator does not look. There is no ruling then.
  static constexpr std::uint32_t kMostPollers = 0xfffe;
  /// A ruling that grants so many pollers, perhaps none.
  static constexpr std::uint32_t of(std::uint32_t pollers) noexcept { return 1 + pollers; }
  static constexpr bool rules(std::uint32_t word) noexcept { return (word & 0xffff) != 0; }
  /// How many pollers a word allows.
  static constexpr std::uint32_t pollers(std::uint32_t word) noexcept {
    return rules(word) ? (word & 0xffff) - 1 : kMostPollers;
  }

  std::atomic<std::uint32_t> word{kNone};
  std::atomic<std::uint32_t> epoch{0};  ///< Counts the times that the allocator fell asleep. Written before kAsleep is.
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

/// Creates a page of zeros: a memfd, sealed as regions are. The caller owns the fd and is to close it once it is handed
/// out.
Result<UniqueFd> create_allocator_page();

/// A fixed address with a page: at first a private page of zeros, later perhaps a shared one, and so on. Threads that
/// read or write it meanwhile see the old page or the new one, never a fault. Not inherited across fork.
///
/// put() and put_zeros() are not thread-safe among themselves.
class AllocatorPageMapping {
 public:
  AllocatorPageMapping() noexcept;
  AllocatorPageMapping(const AllocatorPageMapping&) = delete;
  AllocatorPageMapping& operator=(const AllocatorPageMapping&) = delete;
  ~AllocatorPageMapping();

  /// Checks seals and size of a page's descriptor that another domain sent, maps it here, and closes it. bad_message if
  /// it is no such page, and what lies here stays; after a system_error it is zeros.
  Status put(UniqueFd fd);
  /// A private page of zeros takes its place, whether there is memory to be had or not.
  void put_zeros() noexcept;

  [[nodiscard]] AllocatorPage& operator*() const noexcept { return *page_; }
  [[nodiscard]] AllocatorPage* operator->() const noexcept { return page_; }
  /// False in a fork child, where nothing lies at the address.
  [[nodiscard]] bool here() const noexcept;

 private:
  AllocatorPage* page_;             ///< Constant from construction.
  AllocatorPage* spare_ = nullptr;  ///< Zeros for put_zeros(), there whenever a shared page is.
  AllocatorPage unmapped_;          ///< Stands in where there was no memory for a mapping: then nothing can be put.
  ProcessNumber owner_;
};

}  // namespace lrpc::shim
