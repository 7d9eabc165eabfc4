// The A-stacks of one class that are not in a call: a LIFO, and over it those leased to threads (LRPC §3.2).
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

/// In a fork child: the other threads are not there, their numbers are free.
void forget_other_threads_numbers() noexcept;

/// The linkage records of a binding's secondary A-stacks (LRPC §5.2), in a block for each place. A block comes with the
/// first secondary region in its place and stays until the binding goes, whatever becomes of the region: whoever pops
/// may look into a record that somebody else has just taken away.
class SecondaryRecords {
 public:
  /// `first`: the number of the first secondary A-stack, behind the primary ones.
  explicit SecondaryRecords(std::uint32_t first) noexcept : first_(first) {}
  SecondaryRecords(const SecondaryRecords&) = delete;
  SecondaryRecords& operator=(const SecondaryRecords&) = delete;
  ~SecondaryRecords();

  /// The records of a place, numbered; made if they are not there. Empty: no memory. One thread at a time.
  [[nodiscard]] std::span<shim::LinkageRecord> block(std::uint32_t place) noexcept;
  /// Precondition: the number is that of an A-stack whose block has been made.
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

/// Thread-safe, lock-free while there are A-stacks. Does not own the records.
///
/// An A-stack that a thread has put back stays leased to it, on top, where the same thread finds it hot without a
/// single locked instruction; but whoever finds the LIFO empty may end a lease that is not in a call, so an idle thread
/// never starves another. Lease and its ending are a Dekker pair: the owner writes `in_call` and reads `wanted`, the
/// other writes `wanted` and reads `in_call`; the owner's fence is free because the other's is a membarrier
/// (asymmetric_fence.h). The transitions L1 to L4 are here, the others in the .cpp (docs/MODELS.md).
///
/// That one A-stack serves the thread's synchronous calls, which nest. Calls that are started and finished later take
/// theirs from the thread's spares, a private stack under the same lease: it is guarded by `moving`, which the owner
/// sets only while it takes one off or puts one on. Once taken off, a spare belongs to its call and may be put back by
/// any thread.
///
/// Secondary A-stacks have a LIFO of their own, which is looked into when the first one is empty, and are never leased
/// (they can become a thread's spares): so they are in use while the primary ones do not suffice, and no longer.
class AStackList {
 public:
  AStackList() noexcept = default;
  AStackList(const AStackList&) = delete;
  AStackList& operator=(const AStackList&) = delete;

  /// Fills the list at bind time. `all` are the binding's records, this list's A-stacks are all[first .. first +
  /// count). `secondary`: where those lie that add() brings; must outlive this.
  void fill(std::span<shim::LinkageRecord> all, std::uint32_t first, std::uint32_t count,
            const SecondaryRecords* secondary = nullptr) noexcept;
  /// Secondary A-stacks, from now on this list's; wakes those that wait for one.
  void add(std::span<shim::LinkageRecord> grown) noexcept;

  struct Lease;
  /// The calling thread's. Look again after take_any(), which may give the thread its number.
  [[nodiscard]] Lease& own_lease() noexcept {
    return *reinterpret_cast<Lease*>(reinterpret_cast<std::byte*>(leases_.data()) + shim::calling_thread.lease);
  }

  /// The A-stack leased to this thread, or null if there is none or it is in a call (nested calls). Always null once
  /// the list is closed.
  [[nodiscard]] static shim::LinkageRecord* take_leased(Lease& lease) noexcept {
    LRPC_STEP("client 2");
    // L1
    if (lease.in_call.load(std::memory_order_relaxed) != 0) [[unlikely]]
      return nullptr;
    lease.in_call.store(1, std::memory_order_relaxed);
    shim::light_fence();
    const std::uintptr_t record = lease.record.load(std::memory_order_acquire);
    if ((record & Lease::kWanted) == 0) [[likely]] {
      if (record == 0) __builtin_unreachable();  // none has the bit
      return reinterpret_cast<shim::LinkageRecord*>(record);
    }
    leave_untaken(lease);
    return nullptr;
  }
  /// An A-stack from wherever there is one, or null. May end another thread's lease.
  /// `moving`: set to whether a thread was at its spares, a few instructions long, so that none of them could be had.
  /// Null, and not that: each A-stack was seen in use, or belongs to another thread for good (stop_leasing()).
  [[nodiscard]] shim::LinkageRecord* take_any(bool& moving) noexcept;
  [[nodiscard]] shim::LinkageRecord* take_any() noexcept {
    bool moving = false;
    return take_any(moving);
  }
  /// Puts an A-stack back on top and wakes a waiter if there is one. `lease`: that it was taken from by take_leased(),
  /// or null. Nobody takes a record out of a lease that is in a call, so it is there still.
  void put(Lease* lease, shim::LinkageRecord& record) noexcept {
    if (lease == nullptr) [[unlikely]]
      return put_slow(record);
    lease->in_call.store(0, std::memory_order_release);  // L2
    // The A-stack is free before we look for waiters, who announce themselves before they look for it.
    shim::light_fence();
    if (waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake_waiters();
  }
  /// The top one of this thread's spares, or null. It is nobody's lease any more.
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
  /// Puts an A-stack that is nobody's lease (take_spare(), give_up()) on top of this thread's spares; wakes a waiter if
  /// there is one.
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
      wake_waiters();
  }
  /// Puts an A-stack that is nobody's lease into the LIFO, where any thread finds it.
  void put_shared(shim::LinkageRecord& record) noexcept;
  /// Instead of put(), by the thread that took it: the A-stack leaves the list for now (quarantine). Some later put()
  /// by any thread brings it back.
  void give_up(const shim::LinkageRecord& record) noexcept;
  /// Every A-stack that is not in a call, out of the list, as far as `idle` has room, which is empty; ends all idle
  /// leases. The hottest last, secondary ones anywhere.
  void take_idle(std::vector<shim::LinkageRecord*>& idle) noexcept;
  /// Puts them back in their old order, so that who calls next finds the A-stack that has an E-stack.
  void put_idle(const std::vector<shim::LinkageRecord*>& idle) noexcept;
  /// How many A-stacks are in no call: in the LIFO, leased, or spare. While nobody else uses the list.
  [[nodiscard]] std::size_t count_idle() const noexcept;
  /// A count that wake_waiters() raises. Whoever wants to wait reads it first, before the last look at anything else
  /// that wake_waiters() tells of (the end of the binding).
  [[nodiscard]] std::uint32_t wakes() const noexcept { return wakes_.look(); }
  /// Waits for an A-stack to be put back, at most `limit`, or for one of other words to change, fewer than
  /// kMostFutexWaits. Not if somebody was woken since `seen` was read. May return early; look again.
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit, std::span<const shim::FutexWait> also) noexcept;
  void wake_waiters() noexcept;
  /// Whether there is one that is in nobody's hands; a guess, while others take and put back.
  [[nodiscard]] bool any_free() const noexcept {
    return static_cast<std::uint32_t>(top_.load(std::memory_order_acquire)) != 0 ||
           static_cast<std::uint32_t>(secondary_top_.load(std::memory_order_acquire)) != 0;
  }
  /// The binding is revoked: from now on take_leased() and take_spare() find nothing, so that every taker comes by
  /// BindingObject::take_slow(), which says so. Idempotent.
  void close() noexcept;
  /// The same in a fork child, where nobody else is and a lock may be held by nobody.
  void close_after_fork() noexcept { stop_leasing(); }

  struct alignas(64) Lease {
    /// In `record`: somebody wants what is leased here. There is no record without an owner's look at this bit, so that
    /// one load asks for both.
    static constexpr std::uintptr_t kWanted = 1;
    static constexpr std::uintptr_t kNone = kWanted;

    /// A LinkageRecord's address, or none. The owner puts one in, under ending_, and takes one out that is in its call;
    /// whoever holds ending_ sets and clears kWanted, and takes one out that is in no call.
    std::atomic<std::uintptr_t> record{kNone};
    std::atomic<std::uint8_t> in_call{0};               ///< Written by the owning thread alone.
    std::atomic<std::uint8_t> moving{0};                ///< Written by the owning thread alone.
    std::atomic<std::uint8_t> wanted{0};                ///< Written under ending_ alone; for `spares`.
    std::atomic<shim::LinkageRecord*> spares{nullptr};  ///< Linked through `below`.

    [[nodiscard]] shim::LinkageRecord* leased() const noexcept {
      return reinterpret_cast<shim::LinkageRecord*>(record.load(std::memory_order_acquire) & ~kWanted);
    }
    void set_wanted(bool is) noexcept;
    [[nodiscard]] shim::LinkageRecord* remove() noexcept;
  };
  static_assert(sizeof(Lease) == shim::kLeaseSize);

 private:
  /// Out of the call path's way.
  [[gnu::cold, gnu::noinline]] static void leave_untaken(Lease& lease) noexcept;
  void put_slow(shim::LinkageRecord& record) noexcept;
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
  [[nodiscard]] bool looks_empty() const noexcept;

  /// The last one is nobody's and stays empty, for threads without a number.
  std::array<Lease, kLeasingThreads + 1> leases_{};
  std::atomic<std::uint64_t> top_{0};  ///< {tag: 32, index + 1: 32}; the tag makes a recycled top differ (ABA).
  std::atomic<std::uint32_t> waiters_{0};
  shim::SleepingWord wakes_;
  std::mutex ending_;
  std::atomic<bool> leasing_ended_{false};  ///< The kernel has begun to refuse heavy fences: no more leases.
  std::span<shim::LinkageRecord> all_;
  std::atomic<std::uint64_t> secondary_top_{0};  ///< As top_.
  const SecondaryRecords* secondary_ = nullptr;
};

}  // namespace lrpc::client
