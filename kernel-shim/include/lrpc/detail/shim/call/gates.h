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

/// Every sleep of a caller ends after this and is followed by a look at whether the peer lives.
inline constexpr std::chrono::milliseconds kBoundedSleep{100};
/// Every sleep of a parked E-stack ends after this: rarely enough that idle costs nothing.
inline constexpr std::chrono::seconds kParkedSleep{30};

[[nodiscard]] inline CallWord load_word(const AStackHead& head) noexcept {
  return CallWord(head.word.load(std::memory_order_acquire));
}

// ---- The exchange gate, client's half (LRPC §3.4) ----

/// T1: rings by a plain release store, so that the poller sees the arguments only together with the word. It may
/// overwrite a parked flag: the caller must remember that an E-stack may sleep.
inline void ring_exchange(AStackHead& head, CallWord called) noexcept {
  LRPC_STEP("T1");
  head.word.store(called.bits(), std::memory_order_release);
}

/// Polls for the return of the linkage's last call, for `limits.wait` at most, at the linkage's pace. True if it came;
/// `word` is the last copy either way.
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

/// The same for a call that has just been rung, by whose time the pace is found.
[[nodiscard]] bool poll_rung(LinkageRecord& linkage, const PollPace::Limits& limits, CallWord& word) noexcept;

// ---- A call that nobody waits for, and a poller that goes ----
//
// Who rings by plain store and goes away would not notice that the poller has just gone. So the two are a Dekker pair
// over the word and the hint `polled`: the caller rings, fences, looks at the hint; the poller takes the hint back,
// fences, looks at the word. Either the caller's call is seen in that last look, or the caller sees that the hint is
// off and wakes the E-stack (T4).

/// T1, the fence, the look. True: a poller has the call, whose own fence reaches this caller. False: ask
/// still_polled().
[[nodiscard]] inline bool ring_for_poller(AStackHead& head, CallWord called) noexcept {
  ring_exchange(head, called);
  light_shared_fence();
  return PolledHint(head.polled.load(std::memory_order_relaxed)).polled_and_fenced();
}

/// The caller's half where the hint says that whoever polls cannot fence for its callers: they do. False: nobody polls.
[[nodiscard]] inline bool still_polled(const AStackHead& head) noexcept {
  if (head.polled.load(std::memory_order_relaxed) == 0) return false;
  full_fence();
  return head.polled.load(std::memory_order_relaxed) != 0;
}

/// H6: the poller's half, for each A-stack that it lets go of.
inline void take_hint_back(AStackHead& head) noexcept { head.polled.store(0, std::memory_order_seq_cst); }
/// Behind that, once for all of them, and before the last look at each. `promised`: their hints say that it fences for
/// the callers. False: the kernel does not.
[[nodiscard]] inline bool fence_before_last_look(bool promised) noexcept {
  if (promised) return heavy_shared_fence();
  full_fence();
  return false;
}

// ---- The handoff gate, client's half ----

/// T2: rings by exchange, so that a parked E-stack is noticed whenever it parked. True if it must be woken.
/// Sequentially consistent, for the caller loads `attached` next.
[[nodiscard]] inline bool ring_handoff(AStackHead& head, CallWord called) noexcept {
  LRPC_STEP("T2");
  return CallWord(head.word.exchange(called.bits(), std::memory_order_seq_cst)).estack_parked();
}

/// Gives the processor away again and again, looking for the return of `generation` each time; not again once `limit`
/// ticks() have passed. True if it came.
[[nodiscard]] bool yield_for_return(const AStackHead& head, std::uint64_t generation, std::uint64_t limit,
                                    CallWord& word) noexcept;

/// T3, its first half: announces a sleep in the word. True: the caller may sleep on the word's futex half as long as it
/// is `expected`. False if the word is no longer CALLED(generation), or `revoked` is set: look again.
[[nodiscard]] bool announce_sleep(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                                  std::uint32_t& expected) noexcept;

/// T3: announces the sleep in the word and sleeps on it until it changes, at most `limit`. Returns at once if the word
/// is no longer CALLED(generation) or `revoked` is set. The caller looks at the word again in any case.
Wake sleep_for_return(AStackHead& head, std::uint64_t generation, const std::atomic<bool>& revoked,
                      std::chrono::nanoseconds limit) noexcept;

/// T15: CALLED(generation) → ABANDONED(generation). False if the call returned before (the result is there to take).
[[nodiscard]] bool abandon(AStackHead& head, std::uint64_t generation) noexcept;

// ---- The server's half of both ----

/// Wakes whoever the overwritten word says sleeps on it; what return_to_caller() does when it is not alone.
void wake_sleepers(AStackHead& head, CallWord old) noexcept;

/// T9, T10: returns to the client: exchanges the word and wakes the caller if the *old* value says that it sleeps; a
/// plain store and a look would lose wake-ups. If the old value says abandoned, this very exchange ends the quarantine.
/// A parked flag that is overwritten here is an E-stack that parked while a poller had the call: it is woken to park
/// anew.
inline void return_to_caller(AStackHead& head, CallWord returned) noexcept {
  const CallWord old(head.word.exchange(returned.bits(), std::memory_order_acq_rel));
  LRPC_STEP("T9 returned");
  if (old.caller_sleeps() || old.estack_parked()) [[unlikely]]
    wake_sleepers(head, old);
}

/// T11: parks an E-stack on its A-stack's word until the word changes. Returns without sleeping if there is a call that
/// nobody has claimed, or one of the private flags `leave` and `revoked` is set. Sleeps at most `limit` and
/// kParkedSleep.
///
/// A peer may move the sleeper to another futex (FUTEX_CMP_REQUEUE): then no wake-up on the word reaches it. `summons`,
/// if not null, is a word on which it sleeps, too: who sets one of the flags raises that. It makes the sleep dearer.
/// Precondition: can_wait_any().
void park_estack(AStackHead& head, const ServerLinkage& linkage, const std::atomic<bool>& leave,
                 const std::atomic<bool>& revoked, std::chrono::nanoseconds limit,
                 const SleepingWord* summons = nullptr) noexcept;

/// T14, the word's half: gets a parked E-stack out of its sleep although no call was rung (to detach it): clears the
/// parked flag, so that one that is just about to sleep does not, and wakes. Set its `leave` before.
void unpark_estack(AStackHead& head) noexcept;

// ---- Revocation, either side ----

/// T17 (caller), T18 (estack): changes the word so that no sleep on it that has not looked at the private revoked flag
/// can begin, and wakes whoever of `who` sleeps on it. Set that flag before. `any`: false if nobody can sleep on it who
/// came before the flag.
void revoke_word(AStackHead& head, Sleeper who, bool any = true) noexcept;

}  // namespace lrpc::shim
