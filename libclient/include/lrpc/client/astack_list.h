// The A-stacks of one class that are not in a call: a LIFO, and over it one A-stack leased to each thread (LRPC §3.2).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "lrpc/shim/asymmetric_fence.h"
#include "lrpc/shim/linkage.h"

namespace lrpc::client {

/// How many threads of a process can hold leases at a time; further ones use the LIFO.
inline constexpr unsigned kLeasingThreads = 16;
/// The calling thread's number among those, its own as long as it lives; kLeasingThreads: none (yet, or never where the
/// kernel has no asymmetric fence).
extern constinit thread_local unsigned thread_number;
/// The calling thread's outstanding calls, innermost first (LRPC §3.2: a stack of linkages per thread).
extern constinit thread_local shim::LinkageRecord* thread_linkages;

/// In a fork child: the other threads are not there, their numbers are free.
void forget_other_threads_numbers() noexcept;

/// Thread-safe, lock-free while there are A-stacks. Does not own the records.
///
/// An A-stack that a thread has put back stays leased to it, on top, where the same thread finds it hot without a single
/// locked instruction; but whoever finds the LIFO empty may end a lease that is not in a call, so an idle thread never
/// starves another. Lease and its ending are a Dekker pair: the owner writes `in_call` and reads `wanted`, the other writes
/// `wanted` and reads `in_call`; the owner's fence is free because the other's is a membarrier (asymmetric_fence.h).
class AStackList {
 public:
  AStackList() noexcept = default;
  AStackList(const AStackList&) = delete;
  AStackList& operator=(const AStackList&) = delete;

  /// Fills the list at bind time. `all` are the binding's records, this list's A-stacks are all[first .. first + count).
  void fill(std::span<shim::LinkageRecord> all, std::uint32_t first, std::uint32_t count) noexcept;

  /// The A-stack leased to this thread, or null if there is none or it is in a call (nested calls).
  [[nodiscard]] shim::LinkageRecord* take_leased() noexcept {
    Lease& lease = leases_[thread_number];
    if (lease.in_call.load(std::memory_order_relaxed) != 0) [[unlikely]] return nullptr;
    lease.in_call.store(1, std::memory_order_relaxed);
    shim::light_fence();
    if (lease.wanted.load(std::memory_order_acquire) == 0) [[likely]] {
      shim::LinkageRecord* record = lease.record.load(std::memory_order_relaxed);
      if (record != nullptr) [[likely]] return record;
    }
    lease.in_call.store(0, std::memory_order_release);
    return nullptr;
  }
  /// An A-stack from wherever there is one, or null. May end another thread's lease.
  [[nodiscard]] shim::LinkageRecord* take_any() noexcept;
  /// Puts an A-stack back on top and wakes a waiter if there is one.
  void put(shim::LinkageRecord& record) noexcept {
    Lease& lease = leases_[thread_number];
    if (lease.record.load(std::memory_order_relaxed) != &record) [[unlikely]] return put_slow(record);
    lease.in_call.store(0, std::memory_order_release);
    shim::light_fence();  // the A-stack is free before we look for waiters, who announce themselves before they look for it
    if (waiters_.load(std::memory_order_relaxed) != 0) [[unlikely]] wake_waiters();
  }
  /// Instead of put(), by the thread that took it: the A-stack leaves the list for now (quarantine). Some later put() by
  /// any thread brings it back.
  void give_up(const shim::LinkageRecord& record) noexcept;
  /// Every A-stack that is not in a call, out of the list; ends all idle leases. The hottest last.
  [[nodiscard]] std::vector<shim::LinkageRecord*> take_idle();
  /// Puts them back in their old order, so that who calls next finds the A-stack that has an E-stack.
  void put_idle(const std::vector<shim::LinkageRecord*>& idle) noexcept;
  /// Waits for an A-stack to be put back, at most `limit`. May return early; look again.
  void wait(std::chrono::nanoseconds limit) noexcept;
  void wake_waiters() noexcept;

 private:
  struct alignas(64) Lease {
    std::atomic<shim::LinkageRecord*> record{nullptr};
    std::atomic<std::uint8_t> in_call{0};  ///< Written by the owning thread alone.
    std::atomic<std::uint8_t> wanted{0};   ///< Written under ending_ alone.
  };

  void put_slow(shim::LinkageRecord& record) noexcept;
  void surrender_own_lease() noexcept;
  void stop_leasing() noexcept;
  void push(shim::LinkageRecord& record) noexcept;
  [[nodiscard]] shim::LinkageRecord* pop() noexcept;
  [[nodiscard]] shim::LinkageRecord* end_a_lease() noexcept;
  [[nodiscard]] bool looks_empty() const noexcept;

  /// The last one is nobody's and stays empty, for threads without a number.
  std::array<Lease, kLeasingThreads + 1> leases_{};
  std::atomic<std::uint64_t> top_{0};  ///< {tag: 32, index + 1: 32}; the tag makes a recycled top differ (ABA).
  std::atomic<std::uint32_t> waiters_{0};
  std::atomic<std::uint32_t> returns_{0};  ///< Futex word of the waiters; counts puts that saw one.
  std::mutex ending_;
  std::atomic<bool> leasing_ended_{false};  ///< The kernel has begun to refuse heavy fences: no more leases.
  std::span<shim::LinkageRecord> all_;
};

}  // namespace lrpc::client
