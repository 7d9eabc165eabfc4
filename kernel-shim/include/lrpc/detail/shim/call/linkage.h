// Linkage records: what client and server each keep of an outstanding call, in private memory, not in the region.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/caller_policy.h"
#include "lrpc/detail/shim/call/limits.h"
#include "lrpc/detail/shim/call/poll_pace.h"
#include "lrpc/detail/shim/call/region.h"

namespace lrpc::shim {

/// The client's half: one per A-stack, with the same index, in client memory. Only the thread that holds the A-stack
/// uses it. The records of a thread's outstanding calls form a stack through `below` (LRPC §3.2, nested calls).
struct alignas(128) LinkageRecord {
  AStack astack;
  /// The last call made with this A-stack. The low half is that of its RETURNED(generation), so that the call path need
  /// not shift; above it is the rest of the generation.
  std::uint64_t last = 0;
  LinkageRecord* below = nullptr;      ///< The thread's call in which this one is nested.
  std::uint32_t index = 0;             ///< The A-stack's number in the region.
  std::atomic<std::uint32_t> next{0};  ///< LIFO link: index + 1 of the A-stack below, 0 at the bottom.
  /// The parked flag may have been overwritten unseen: wake the E-stack in any case. True while `policy` trusts a hint.
  bool estack_may_sleep = true;
  bool quarantined = false;  ///< Abandoned: not to be reused before its RETURNED(generation).
  bool limited = false;      ///< `until` and `cancellations` limit this call.
  bool rested = false;       ///< See AStackList::note_resting(). Only the thread that revokes the binding uses it.
  PollPace pace;             ///< How often to look while polling.
  CallerPolicy policy;       ///< How to wait.
  // The limits of a call that was started within a scope of limits, for when it is finished later.
  std::chrono::steady_clock::time_point until{};
  std::shared_ptr<const Cancellations> cancellations;
  /// The generation of the last one-way call that was slow to return. Under the lock of the binding's quarantine.
  std::uint64_t slow_generation = 0;

  /// The last call's generation; the word has it modulo 2^24.
  [[nodiscard]] std::uint64_t generation() const noexcept { return last >> CallWord::kGenerationShift; }
  /// Begins the next call; returns its word.
  [[nodiscard]] CallWord next_call(std::uint16_t procedure, std::uint16_t processor) noexcept {
    last += std::uint64_t{1} << CallWord::kGenerationShift;
    return CallWord::called_after(last, procedure, processor);
  }
  /// The last call was never rung: the next one gets its generation.
  void take_back() noexcept { last -= std::uint64_t{1} << CallWord::kGenerationShift; }
};
static_assert(sizeof(LinkageRecord) == 256);

/// The server's half: the claim. Each generation can be claimed once, by the first thread that tries, so a stale poller
/// never executes a later call's arguments. The generation has 56 bits and never wraps, whatever is in the shared word.
class ServerLinkage {
 public:
  enum class State : std::uint8_t { free = 0, claimed = 1 };

  [[nodiscard]] static constexpr std::uint64_t bits(std::uint64_t generation, State state) noexcept {
    return generation << 8 | static_cast<std::uint64_t>(state);
  }
  /// One load: a private copy for is_free(), claimed_after() and claim_from(), with which the call path need not shift.
  [[nodiscard]] std::uint64_t look() const noexcept { return bits_.load(std::memory_order_relaxed); }
  [[nodiscard]] static constexpr bool is_free(std::uint64_t seen) noexcept { return (seen & 0xff) == 0; }
  /// What the next claim makes of a linkage that was seen free. Its low half is that of the call's word without flags,
  /// so CallWord::same_turn() can compare the two. Precondition: is_free(seen).
  [[nodiscard]] static constexpr std::uint64_t claimed_after(std::uint64_t seen) noexcept {
    return seen + bits(1, State::claimed);
  }
  /// The generation that the next call must have, or 0 while a call is claimed.
  [[nodiscard]] std::uint64_t next_generation() const noexcept {
    const std::uint64_t now = bits_.load(std::memory_order_relaxed);
    return (now & 0xff) == 0 ? (now >> 8) + 1 : 0;
  }
  /// For the claimer: the generation that it has claimed.
  [[nodiscard]] std::uint64_t claimed_generation() const noexcept { return bits_.load(std::memory_order_relaxed) >> 8; }
  /// T5: {n-1, free} → {n, claimed}. True for exactly one claimer. Acquire, so that the claimer sees what the last
  /// holder of this A-stack wrote before its release. Sequentially consistent, so that a thread that removes the
  /// procedures and then sees no claim knows that no later claimer finds a procedure.
  [[nodiscard]] bool claim(std::uint64_t generation) noexcept { return claim_from(bits(generation - 1, State::free)); }
  /// The same, from a linkage that was seen free.
  [[nodiscard]] bool claim_from(std::uint64_t seen) noexcept {
    return bits_.compare_exchange_strong(seen, claimed_after(seen), std::memory_order_seq_cst,
                                         std::memory_order_relaxed);
  }
  /// T8: the call is over: {n, claimed} → {n, free}.
  void release(std::uint64_t generation) noexcept {
    bits_.store(bits(generation, State::free), std::memory_order_release);
  }
  /// T7: there was no call n after all: {n, claimed} → {n-1, free}.
  void unclaim(std::uint64_t generation) noexcept { release(generation - 1); }
  /// T8 for a claimer that has not kept the generation: releases, and returns the turn and generation of RETURNED(n).
  std::uint32_t release_claimed() noexcept {
    const std::uint64_t free = bits_.load(std::memory_order_relaxed) - static_cast<std::uint64_t>(State::claimed);
    bits_.store(free, std::memory_order_release);
    return static_cast<std::uint32_t>(free);
  }

 private:
  std::atomic<std::uint64_t> bits_{0};
};

}  // namespace lrpc::shim
