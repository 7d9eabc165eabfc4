// The idle A-stacks of one class: a LIFO, and A-stacks that are leased to threads (LRPC §3.2).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "lrpc/detail/shim/binder/growth.h"
#include "lrpc/detail/shim/call/calling_thread.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"
#include "lrpc/detail/shim/system/futex.h"
#include "lrpc/detail/shim/system/handover.h"
#include "lrpc/detail/shim/system/sleeping_word.h"

namespace lrpc::client {

using shim::kLeasingThreads;

/// Call it in a forked child: frees the numbers of the other threads, which do not exist there.
void forget_other_threads_numbers() noexcept;

/// The linkage records of a binding's secondary A-stacks (LRPC §5.2): one block for each place. A place takes one
/// secondary region at a time. A block is allocated for the first region in its place and stays until the binding
/// ends, even after the region is returned: a thread in pop() may read a record that another thread has just taken.
class SecondaryRecords {
 public:
  /// `first`: the number of the first secondary A-stack; the primary ones have the numbers below it.
  explicit SecondaryRecords(std::uint32_t first) noexcept : first_(first) {}
  ~SecondaryRecords();

  /// The records of a place, with their numbers set; the first call allocates them. Empty: no memory. One thread at a
  /// time.
  [[nodiscard]] std::span<shim::LinkageRecord> block(std::uint32_t place) noexcept;
  /// The record of A-stack number `index`. Precondition: its block has been made.
  [[nodiscard]] shim::LinkageRecord& operator[](std::uint32_t index) const noexcept {
    const std::uint32_t within = index - first_;
    return blocks_[within / shim::kMostAStacksInSecondary].load(
        std::memory_order_acquire)[within % shim::kMostAStacksInSecondary];
  }
  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t place_of(const shim::LinkageRecord& record) const noexcept {
    return (record.index - first_) / shim::kMostAStacksInSecondary;
  }

 private:
  const std::uint32_t first_;
  std::array<std::atomic<shim::LinkageRecord*>, shim::kMostSecondaryRegions> blocks_{};
};

/// Thread-safe; lock-free unless the LIFOs are empty. Does not own the records.
///
/// An A-stack that a thread puts back stays leased to that thread: its next call takes it, still in the cache, without
/// a locked instruction. A thread that finds the LIFOs empty may end another thread's lease that is in no call, so an
/// idle thread never starves another. Using a lease and ending it are a Dekker pair: the owner writes `in_call` and
/// reads kWanted; the other thread writes kWanted and reads `in_call`. The owner's fence costs nothing because the
/// other thread's is a membarrier (asymmetric_fence.h). The transitions L1 to L4 are here, the others in the .cpp
/// (docs/MODELS.md).
///
/// The leased A-stack serves the thread's synchronous calls. Calls that are started and finished later take one of the
/// thread's spares, a private stack under the same lease. `moving` guards that stack: the owner sets it only while it
/// takes a spare off or puts one on. A spare that was taken belongs to its call, and any thread may put it back.
///
/// Secondary A-stacks have a LIFO of their own, which is used only when the first one is empty. They are never leased,
/// but can become a thread's spares.
class AStackList {
 public:
  AStackList() noexcept = default;
  AStackList(const AStackList&) = delete;
  AStackList& operator=(const AStackList&) = delete;

  /// Fills the list at bind time. `all`: the binding's records, of which [first, first + count) are this list's
  /// A-stacks. `secondary`: the records of those that add() will bring; must outlive this.
  void fill(std::span<shim::LinkageRecord> all, std::uint32_t first, std::uint32_t count,
            const SecondaryRecords* secondary = nullptr) noexcept;
  /// Adds secondary A-stacks, and wakes threads that wait for one.
  void add(std::span<shim::LinkageRecord> grown) noexcept;

  struct Lease;
  /// The calling thread's lease. Call it again after take_any(), which may number the thread and so change its lease.
  [[nodiscard]] Lease& own_lease() noexcept {
    return *reinterpret_cast<Lease*>(reinterpret_cast<std::byte*>(leases_.data()) + shim::calling_thread.lease);
  }

  /// The A-stack leased to this thread; null if there is none, or it is in a call (nested calls), or the list is
  /// closed.
  [[nodiscard]] static shim::LinkageRecord* take_leased(Lease& lease) noexcept {
    LRPC_STEP("client 2");
    // L1
    if (lease.in_call.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return nullptr;
    lease.in_call.store(1, std::memory_order_relaxed);
    shim::light_fence();
    const std::uintptr_t record = lease.record.load(std::memory_order_acquire);
    if ((record & Lease::kWanted) == 0) [[likely]] {
      if (record == 0) __builtin_unreachable();  // kNone has the bit kWanted
      return reinterpret_cast<shim::LinkageRecord*>(record);
    }
    leave_untaken(lease);
    return nullptr;
  }
  /// Any A-stack, or null. May end another thread's lease. Sets `moving` to whether another thread was taking or
  /// putting a spare (for a few instructions), so that its spares could not be taken. Null without `moving`: each
  /// A-stack was seen in use or, after stop_leasing(), can be taken only by the thread to which it is leased.
  [[nodiscard]] shim::LinkageRecord* take_any(bool& moving) noexcept;
  [[nodiscard]] shim::LinkageRecord* take_any() noexcept {
    bool moving = false;
    return take_any(moving);
  }
  /// Takes one of this thread's own A-stacks, spare or leased, or null. For a thread that lets starving threads go
  /// first.
  [[nodiscard]] shim::LinkageRecord* take_own() noexcept;
  /// Puts an A-stack back on top, and wakes a waiter if there is one. `lease`: from which take_leased() took it, or
  /// null. Nobody takes a record out of a lease that is in a call, so the record is still in it.
  void put(Lease* lease, shim::LinkageRecord& record) noexcept {
    if (lease == nullptr) [[unlikely]]
      return put_slow(record);
    lease->in_call.store(0, std::memory_order_release);  // L2
    // Free the A-stack, then look for waiters: they announce themselves, then look for an A-stack.
    shim::light_fence();
    if (waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      serve_waiters();
  }
  /// Takes this thread's top spare, or null. It is then under no lease.
  LRPC_OF_THE_RUNTIME [[nodiscard]] shim::LinkageRecord* take_spare() noexcept {
    LRPC_STEP("client 2 started");
    Lease& lease = own_lease();
    lease.moving.store(1, std::memory_order_relaxed);  // L3
    shim::light_fence();
    shim::LinkageRecord* record = nullptr;
    if (lease.wanted.load(std::memory_order_acquire) == 0) [[likely]] {
      record = lease.spares.load(std::memory_order_relaxed);
      if (record != nullptr) [[likely]]
        lease.spares.store(record->below, std::memory_order_relaxed);
    }
    lease.moving.store(0, std::memory_order_release);
    return record;
  }
  /// Puts an A-stack that is under no lease (take_spare(), give_up()) on top of this thread's spares, and wakes a
  /// waiter if there is one.
  LRPC_OF_THE_RUNTIME void put_spare(shim::LinkageRecord& record) noexcept {
    if (shim::calling_thread.number() >= kLeasingThreads) [[unlikely]]
      return put_shared(record);
    Lease& lease = own_lease();
    lease.moving.store(1, std::memory_order_relaxed);  // L4
    shim::light_fence();
    if (lease.wanted.load(std::memory_order_acquire) != 0) [[unlikely]] {
      lease.moving.store(0, std::memory_order_release);
      return put_shared(record);
    }
    record.below = lease.spares.load(std::memory_order_relaxed);
    lease.spares.store(&record, std::memory_order_relaxed);
    lease.moving.store(0, std::memory_order_release);
    shim::light_fence();  // as in put()
    if (waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      serve_waiters();
  }
  /// Puts an A-stack that is under no lease into the LIFO, for any thread.
  void put_shared(shim::LinkageRecord& record) noexcept;
  /// Called instead of put() by the thread that took the A-stack: the A-stack leaves the list (for quarantine) until
  /// any thread puts it back.
  void give_up(const shim::LinkageRecord& record) noexcept;
  /// Moves the A-stacks that are in no call from the list to `idle`, up to its capacity. Ends all idle leases. The last
  /// used come last, secondary ones anywhere. Precondition: `idle` is empty.
  void take_idle(std::vector<shim::LinkageRecord*>& idle) noexcept;
  /// Puts them back in their old order, so that the next call finds the A-stack that has an E-stack.
  void put_idle(const std::vector<shim::LinkageRecord*>& idle) noexcept;
  /// How many A-stacks are in no call: in the LIFO, leased, or spare. Only while no other thread uses the list.
  [[nodiscard]] std::size_t count_idle() const noexcept;
  /// A count that wake_waiters() raises. A thread that wants to wait reads it first, before its last look at anything
  /// that wake_waiters() announces (A-stacks, the end of the binding).
  [[nodiscard]] std::uint32_t wakes() const noexcept { return wakes_.look(); }
  /// Waits until an A-stack is put back, or a word in `also` (fewer than kMostFutexWaits) changes; at most `limit`.
  /// Returns at once if wakes() has changed since `seen`. May return early: look again. `behind`: waits while any
  /// thread starves, even if there are idle A-stacks.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit, std::span<const shim::FutexWait> also,
            bool behind = false) noexcept;
  /// Marks the calling thread, which has waited for long, as starving until end_starving(). Meanwhile a thread that
  /// puts an A-stack back keeps no idle one, neither leased nor spare. A thread that does not starve takes only its own
  /// A-stacks and waits behind the starving threads, as long as those take what is put back.
  void starve() noexcept { waiters_.fetch_add(kStarver, std::memory_order_seq_cst); }
  void end_starving() noexcept;
  [[nodiscard]] bool anybody_starves() const noexcept { return waiters_.load(std::memory_order_relaxed) >= kStarver; }
  void wake_waiters() noexcept { wakes_.raise(); }
  /// As wake_waiters(), but without a system call if nobody waits.
  void tell_waiters() noexcept;
  /// Whether an A-stack is in a LIFO; a guess while other threads use the list.
  [[nodiscard]] bool any_free() const noexcept {
    return static_cast<std::uint32_t>(top_.load(std::memory_order_acquire)) != 0 ||
           static_cast<std::uint32_t>(secondary_top_.load(std::memory_order_acquire)) != 0;
  }
  /// Whether take_any() would find no A-stack at all: in a LIFO, leased or spare. A guess while other threads use the
  /// list.
  [[nodiscard]] bool looks_empty() const noexcept;
  /// The binding is revoked: from now on take_leased() and take_spare() find nothing, so every caller gets to
  /// BindingObject::take_slow(), which reports it. Idempotent.
  void close() noexcept {
    std::lock_guard lock(ending_);
    stop_leasing();
  }
  /// Sets `rested` of the primary A-stacks that are in the LIFO now, or of none if others use the LIFO meanwhile. A
  /// thread that takes one of them later sees what the calling thread has done before. One thread, once.
  void note_resting() noexcept;
  /// close() for a forked child. Takes no lock: a thread that does not exist there may hold it.
  void close_after_fork() noexcept { stop_leasing(); }

  struct alignas(64) Lease {
    /// In `record`: another thread wants the leased A-stack. Address and bit are in one word, so that the owner's one
    /// load reads both.
    static constexpr std::uintptr_t kWanted = 1;
    static constexpr std::uintptr_t kNone = kWanted;

    /// A LinkageRecord's address, or kNone. The owner puts a record in, under ending_, and takes it out. A thread that
    /// holds ending_ sets and clears kWanted, and takes out a record that is in no call.
    std::atomic<std::uintptr_t> record{kNone};
    std::atomic<std::uint8_t> in_call{0};               ///< Written only by the owner.
    std::atomic<std::uint8_t> moving{0};                ///< Written only by the owner.
    std::atomic<std::uint8_t> wanted{0};                ///< For `spares`; written only under ending_.
    std::atomic<shim::LinkageRecord*> spares{nullptr};  ///< Linked through `below`.

    [[nodiscard]] shim::LinkageRecord* leased() const noexcept {
      return reinterpret_cast<shim::LinkageRecord*>(record.load(std::memory_order_acquire) & ~kWanted);
    }
    void set_wanted(bool is) noexcept;
    [[nodiscard]] shim::LinkageRecord* remove() noexcept;
  };
  static_assert(sizeof(Lease) == shim::kLeaseSize);

 private:
  /// Kept out of the call path.
  [[gnu::cold, gnu::noinline]] static void leave_untaken(Lease& lease) noexcept;
  void put_slow(shim::LinkageRecord& record) noexcept;
  void serve_waiters() noexcept;
  [[nodiscard]] bool lease_to(Lease& lease, shim::LinkageRecord& record) noexcept;
  void surrender_own_lease() noexcept;
  void stop_leasing() noexcept;
  [[nodiscard]] bool is_secondary(const shim::LinkageRecord& record) const noexcept {
    return record.index >= all_.size();
  }
  void push(shim::LinkageRecord& record) noexcept;
  [[nodiscard]] shim::LinkageRecord* pop() noexcept;
  [[nodiscard]] shim::LinkageRecord* pop_secondary() noexcept;
  [[nodiscard]] shim::LinkageRecord* end_a_lease(bool& moving) noexcept;
  [[nodiscard]] static shim::LinkageRecord* take_from(Lease& lease, bool& moving) noexcept;

  /// The last one stays empty: it is for threads without a number.
  std::array<Lease, kLeasingThreads + 1> leases_{};
  std::atomic<std::uint64_t> top_{0};  ///< {tag: 32, index + 1: 32}; the tag makes a recycled top differ (ABA).
  /// What a starving thread adds to waiters_, so that one load reads both counts: waiters in the low half, starving
  /// threads in the high half. Linux thread ids have at most 22 bits, so neither count overflows into the other.
  static constexpr std::uint64_t kStarver = 1ULL << 32;
  std::atomic<std::uint64_t> waiters_{0};
  shim::SleepingWord wakes_;
  std::mutex ending_;
  std::atomic<bool> leasing_ended_{false};  ///< Revoked, or the kernel refuses heavy fences: no more leases.
  std::span<shim::LinkageRecord> all_;
  std::atomic<std::uint64_t> secondary_top_{0};  ///< Like top_.
  const SecondaryRecords* secondary_ = nullptr;
};

}  // namespace lrpc::client
