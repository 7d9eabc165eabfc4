// The gates: how control gets from the client's domain to the server's and back over one call word.
// The transition names T… are those of docs/CALL_WORD.md, which the model in tests/model checks.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "lrpc/detail/shim/call/call_word.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/asymmetric_fence.h"
#include "lrpc/detail/shim/system/futex.h"
#include "lrpc/detail/shim/system/processor.h"
#include "lrpc/detail/shim/system/sleeping_word.h"

namespace lrpc::shim {

/// No sleep of a caller is longer. After it the caller checks whether the peer lives.
inline constexpr std::chrono::milliseconds kBoundedSleep{100};
/// No sleep of a parked E-stack is longer. So long, that idle E-stacks cost nothing.
inline constexpr std::chrono::seconds kParkedSleep{30};

[[nodiscard]] inline CallWord load_word(const AStackHead& head) noexcept {
  return CallWord(head.word.load(std::memory_order_acquire));
}

// ---- The exchange gate, client's half (LRPC §3.4) ----

/// T1: rings by a plain release store: a poller that sees the word also sees the arguments. The store may overwrite a
/// parked flag, so the caller must remember that an E-stack may sleep.
inline void ring_exchange(AStackHead& head, CallWord called) noexcept {
  LRPC_STEP("T1");
  head.word.store(called.bits(), std::memory_order_release);
}

/// Polls for the return of the linkage's last call, at the linkage's pace, for at most `limits.wait`. True if it came.
/// Either way `word` is the last copy of the call word.
[[nodiscard]] inline bool poll_return(const LinkageRecord& linkage, const PollPace::Limits& limits,
                                      CallWord& word) noexcept {
  const AStackHead& head = *linkage.astack.head;
  word = load_word(head);
  if (word.is_plain(linkage.last)) [[likely]]
    return true;
  const unsigned pace = linkage.pace.delays();
  for (std::uint32_t waited = 0;; waited += pace) {
    if (word.same_turn(linkage.last)) return true;  // an E-stack has parked since
    if (waited >= limits.wait) return false;
    for (unsigned i = 0; i < pace; ++i) poll_delay();
    word = load_word(head);
  }
}

/// The same for a call that has just been rung. Its time helps to find the pace.
[[nodiscard]] bool poll_rung(LinkageRecord& linkage, const PollPace::Limits& limits, CallWord& word) noexcept;

// ---- A call that nobody waits for, and a poller that leaves ----
//
// A caller that rings by a plain store and does not wait would not notice that the poller has just left. So the two are
// a Dekker pair over the word and the hint `polled`. The caller rings, fences, and looks at the hint; the poller clears
// the hint, fences, and looks at the word. Either the poller sees the call in that last look, or the caller sees that
// the hint is off, and wakes the E-stack (T4).
//
// The poller may also be held up in another client's procedure. So such a caller looks at the hint `attached`, too, and
// is a Dekker pair with an E-stack that detaches (T14): over the word and that hint, and with the same fences.

/// T1, then the fence, then the look. True: a poller has the call, and its own fence covers this caller. False: ask
/// still_polled().
[[nodiscard]] inline bool ring_for_poller(AStackHead& head, CallWord called) noexcept {
  ring_exchange(head, called);
  light_shared_fence();
  return PolledHint(head.polled.load(std::memory_order_relaxed)).polled_and_fenced();
}

/// The caller's half for a poller that cannot fence for its callers: they fence themselves. False: nobody polls.
[[nodiscard]] inline bool still_polled(const AStackHead& head) noexcept {
  if (head.polled.load(std::memory_order_relaxed) == 0) return false;
  full_fence();
  return head.polled.load(std::memory_order_relaxed) != 0;
}

/// H6: the poller's half, for each A-stack that it stops polling.
inline void take_hint_back(AStackHead& head) noexcept { head.polled.store(0, std::memory_order_seq_cst); }
/// After take_hint_back(), once for all these A-stacks, and before the last look at each. `promised`: their hints say
/// that the poller fences for the callers. True if the kernel has done that. Also for an E-stack that detaches, after
/// it has cleared `attached`; `promised`: a poller has the A-stack, or may take it back.
[[nodiscard]] inline bool fence_before_last_look(bool promised) noexcept {
  if (promised) return heavy_shared_fence();
  full_fence();
  return false;
}

// ---- The handoff gate, client's half ----

/// T2: rings by an exchange, which shows whether an E-stack is parked, however late it parked. True if the E-stack must
/// be woken. Sequentially consistent, because the caller loads `attached` next.
[[nodiscard]] inline bool ring_handoff(AStackHead& head, CallWord called) noexcept {
  LRPC_STEP("T2");
  return CallWord(head.word.exchange(called.bits(), std::memory_order_seq_cst)).estack_parked();
}

/// Yields the processor and looks for the return of `generation`, again and again until `limit` ticks() have passed.
/// True if it came.
[[nodiscard]] bool yield_for_return(const AStackHead& head, std::uint64_t generation, std::uint64_t limit,
                                    CallWord& word) noexcept;

/// T3, its first half: announces a sleep in the word. True: the caller may sleep while the word's futex half is
/// `expected`. False if the word is no longer CALLED(generation), or if it or `revoked` says that the binding is
/// revoked: look again. `turn`: abandoned, for a caller that waits for the A-stack and not for the call.
[[nodiscard]] bool announce_sleep(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                                  std::uint32_t& expected, Turn turn = Turn::called) noexcept;

/// T3: announces the sleep, then sleeps until the word changes, for at most `limit`. Returns at once where
/// announce_sleep() says false. In any case the caller must look at the word again.
Wake sleep_for_return(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                      std::chrono::nanoseconds limit) noexcept;

/// T15: CALLED(generation) → ABANDONED(generation). False if the call has returned; the result can be taken.
[[nodiscard]] bool abandon(AStackHead& head, std::uint64_t generation) noexcept;

// ---- The server's half of both ----

/// Wakes those that sleep on the word according to `old`, its overwritten value: the rare half of return_to_caller().
void wake_sleepers(AStackHead& head, CallWord old) noexcept;

/// T9, T10: returns to the client. Exchanges the word, and wakes the caller if the *old* value says that it sleeps: a
/// look and a plain store would lose wake-ups. If the old value says abandoned, this exchange ends the quarantine, and
/// wakes those that wait for the A-stack. If it has a parked flag, an E-stack parked while a poller had the call: it is
/// woken, and parks again.
inline void return_to_caller(AStackHead& head, CallWord returned) noexcept {
  const CallWord old(head.word.exchange(returned.bits(), std::memory_order_acq_rel));
  LRPC_STEP("T9 returned");
  if (old.caller_sleeps() || old.estack_parked()) [[unlikely]]
    wake_sleepers(head, old);
}

/// T11: parks an E-stack on its A-stack's word until the word changes. Returns at once if there is a call that nobody
/// has claimed, or if one of the private flags `leave` and `revoked` is set. Sleeps for at most `limit`, and never
/// longer than kParkedSleep.
///
/// A peer may move the sleeper to another futex (FUTEX_CMP_REQUEUE); then no wake-up on the word reaches it. So the
/// E-stack also sleeps on `summons`, if that is not null: a thread that sets one of the flags raises this word. Such a
/// sleep costs more. Precondition with `summons`: can_wait_any().
void park_estack(AStackHead& head, const ServerLinkage& linkage, const std::atomic<bool>& leave,
                 const std::atomic<bool>& revoked, std::chrono::nanoseconds limit,
                 const SleepingWord* summons = nullptr) noexcept;

/// T14, the word's half: wakes a parked E-stack without a call, to detach it. Clears the parked flag, so that an
/// E-stack that is about to sleep does not, then wakes. Set its `leave` flag before.
void unpark_estack(AStackHead& head) noexcept;

// ---- Revocation, either side ----

/// T17 (caller), T18 (estack): changes the word, then wakes the sleepers of kind `who`. After the change no sleep can
/// begin that has not looked at the private revoked flag. Set that flag before. `any`: false if no thread that came
/// before the flag can sleep on the word; then none is woken.
void revoke_word(AStackHead& head, Sleeper who, bool any = true) noexcept;

}  // namespace lrpc::shim
