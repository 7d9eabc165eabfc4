#include "lrpc/detail/shim/call/gates.h"

#include <sched.h>

#include <algorithm>

namespace lrpc::shim {

bool poll_rung(LinkageRecord& linkage, const PollPace::Limits& limits, CallWord& word) noexcept {
  if (!poll_return(linkage, limits, word)) return false;
  if (linkage.pace.returned()) [[unlikely]]
    linkage.pace.tell_time(ticks(), limits.most);
  return true;
}

bool yield_for_return(const AStackHead& head, std::uint64_t generation, std::uint64_t limit, CallWord& word) noexcept {
  const std::uint64_t began = ticks();
  do {
    sched_yield();
    word = load_word(head);
    if (word.is(Turn::returned, generation)) return true;
  } while (ticks() - began < limit);
  return false;
}

bool announce_sleep(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                    std::uint32_t& expected, Turn turn) noexcept {
  std::uint64_t seen = head.word.load(std::memory_order_acquire);
  CallWord word(seen);
  if (!word.is(turn, generation) || word.revoked()) return false;
  if (!word.caller_sleeps()) {
    const CallWord sleeping = word.with(CallWord::kCallerSleeps);
    LRPC_STEP("T3");
    // CAS, not or: if the server returned meanwhile, its word must stand.
    if (!head.word.compare_exchange_strong(seen, sleeping.bits(), std::memory_order_seq_cst)) return false;
    word = sleeping;
  }
  // Check `revoked`, not the word's revoked bit alone: our own call may have been stored over the bit.
  if (revoked.load(std::memory_order_seq_cst)) return false;
  LRPC_STEP("T3 sleep");
  expected = word.futex_value();
  return true;
}

Wake sleep_for_return(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                      std::chrono::nanoseconds limit) noexcept {
  std::uint32_t expected = 0;
  if (!announce_sleep(head, generation, revoked, expected)) return Wake::changed;
  return futex_wait(head.word, expected, Sleeper::caller, limit);
}

bool abandon(AStackHead& head, std::uint64_t generation) noexcept {
  LRPC_STEP("T15");
  std::uint64_t seen = head.word.load(std::memory_order_acquire);
  while (CallWord(seen).is(Turn::called, generation)) {
    const std::uint64_t abandoned =
        (seen & ~(CallWord::kTurnMask | CallWord::kCallerSleeps)) | static_cast<std::uint64_t>(Turn::abandoned);
    if (head.word.compare_exchange_weak(seen, abandoned, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void wake_sleepers(AStackHead& head, CallWord old) noexcept {
  LRPC_STEP("T9 wake");
  if (old.caller_sleeps()) futex_wake(head.word, Sleeper::caller);
  if (old.estack_parked()) futex_wake(head.word, Sleeper::estack);
}

void park_estack(AStackHead& head, const ServerLinkage& linkage, const std::atomic<bool>& leave,
                 const std::atomic<bool>& revoked, std::chrono::nanoseconds limit,
                 const SleepingWord* summons) noexcept {
  const std::uint32_t summoned = summons != nullptr ? summons->look() : 0;  // before the flags
  std::uint64_t seen = head.word.load(std::memory_order_acquire);
  CallWord word(seen);
  if (!word.estack_parked()) {
    LRPC_STEP("T11");
    const CallWord parked = word.with(CallWord::kEStackParked);
    if (!head.word.compare_exchange_strong(seen, parked.bits(), std::memory_order_seq_cst)) return;
    word = parked;
  }
  // Only now look whether this word is a call for us. If a poller has it (claimed, next is 0), its return finds the
  // parked flag and wakes us. If it has returned and the client called again before our CAS, then the release of the
  // linkage came before what our CAS read, so the next generation is seen here.
  const std::uint64_t next = linkage.next_generation();
  if (next != 0 && (word.is(Turn::called, next) || word.is(Turn::abandoned, next))) return;
  // Whatever sets one of the flags clears the parked flag after it: either the load here sees the flag, or the futex
  // sees the change. Not the word's revoked bit: a client could set it for ever and keep us from ever sleeping.
  if (leave.load(std::memory_order_seq_cst) || revoked.load(std::memory_order_seq_cst)) return;
  LRPC_STEP("T11 sleep");
  limit = std::min<std::chrono::nanoseconds>(limit, kParkedSleep);
  if (summons == nullptr) {
    futex_wait(head.word, word.futex_value(), Sleeper::estack, limit);
  } else {
    const FutexWait both[] = {{&head.word, word.futex_value(), true}, summons->unless_changed(summoned)};
    futex_wait_any(both, limit);
  }
}

void unpark_estack(AStackHead& head) noexcept {
  LRPC_STEP("T14 unpark");
  head.word.fetch_and(~CallWord::kEStackParked, std::memory_order_seq_cst);
  futex_wake(head.word, Sleeper::estack);
}

void revoke_word(AStackHead& head, Sleeper who, bool any) noexcept {
  LRPC_STEP("T17 T18 word");
  head.word.fetch_or(CallWord::kRevoked, std::memory_order_seq_cst);
  // The bit may have been set before, by the other side; then only this changes the word under a parking E-stack.
  if (who == Sleeper::estack) head.word.fetch_and(~CallWord::kEStackParked, std::memory_order_seq_cst);
  if (any) futex_wake(head.word, who);
}

}  // namespace lrpc::shim
