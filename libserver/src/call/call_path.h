// The call path, server's half (LRPC §3.2; the letters are those of docs/ARCHITECTURE.md). In the order it runs.
#pragma once

#include <cstdint>

#include "lrpc/detail/server/run.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/step.h"
#include "primed_context.h"
#include "served_binding.h"

namespace lrpc::server {

/// The result of serve().
enum class Served : std::uint8_t {
  nothing,   ///< No call for this thread: none was rung, or another thread has it.
  returned,  ///< A call was executed, or refused, and has returned.
};

/// The kind of thread that looks for a call: a procedure that may block must not hold up a poller.
enum class Scanner : std::uint8_t { estack, poller };

/// A poller has found a call that it must not execute: it wakes the E-stack, once for each call.
inline void leave_to_estack(ServedAStack& astack, std::uint64_t generation) noexcept {
  if (astack.left_to_estack == generation) return;
  astack.left_to_estack = generation;
  shim::futex_wake(astack.head->word, shim::Sleeper::estack);
}

/// A claimed linkage equals the word of its call; the two bits of kCalledOrAbandoned tell that from an abandoned call.
static_assert(shim::ServerLinkage::bits(7, shim::ServerLinkage::State::claimed) ==
                  shim::CallWord::called(7, 0, 0).bits() &&
              shim::ServerLinkage::bits(7, shim::ServerLinkage::State::free) == shim::CallWord::returned(7, 0).bits());
inline constexpr std::uint64_t kCalledOrAbandoned =
    static_cast<std::uint64_t>(shim::Turn::called) ^ static_cast<std::uint64_t>(shim::Turn::abandoned);

/// The check ladder: whether a call of this procedure is refused; why() gives the error. A call on an A-stack that is
/// not of the procedure's class is refused by the stub in the A-stack's table (ServedInterface::entries).
[[nodiscard]] inline bool refused(const ServedAStack& astack, std::size_t procedure) noexcept {
  // A revoked binding has no procedures (ServedBinding::revoke), so one look at their number asks for both. Behind the
  // claim, see none_executes().
  return procedure >= astack.entry_count.load(std::memory_order_seq_cst);
}
[[nodiscard]] inline Errc why(const ServedAStack& astack) noexcept {
  return astack.binding->revoked() ? Errc::binding_revoked : Errc::bad_procedure;
}

/// f and g: the end of every claimed call.
inline void finish(ServedAStack& astack, std::uint16_t status) noexcept {
  LRPC_STEP("server f");
  // f · release the linkage (T8): after g the client may ring again at once.
  std::uint64_t returned = astack.linkage.release_claimed();
  if (status != 0) [[unlikely]]
    returned |= std::uint64_t{status} << 32;
  LRPC_STEP("server g");
  // g · return (T9, T10).
  shim::return_to_caller(*astack.head, shim::CallWord(returned));
}

/// Reports the exception that is being handled, to ExportOptions::on_exception or on stderr.
[[gnu::cold, gnu::noinline]] void tell_exception(const ServedInterface& interface, std::uint16_t procedure) noexcept;

/// Calls the entry stub. If an exception escapes the procedure, the call ends as exception_escaped; the server lives.
inline std::uint16_t enter(EntryStub stub, const ServedAStack& astack, PrimedContext& context) noexcept {
  try {
    return stub(astack.impl, context);
  } catch (...) {
    tell_exception(astack.binding->interface(), context.procedure());
    return failed(Errc::exception_escaped);
  }
}

/// finish() for a call whose context has more to do at its end.
[[gnu::noinline]] inline void finish_and_clean(ServedAStack& astack, PrimedContext& context,
                                               std::uint16_t status) noexcept {
  finish(astack, context.end() ? status : failed(Errc::call_aborted));
  context.done();
}

/// A claimed call that is not to be executed. Cold.
[[gnu::cold, gnu::noinline]] inline Served decline(ServedAStack& astack, shim::CallWord word, Errc refusal) noexcept {
  LRPC_STEP("T6 T7");
  const std::uint64_t generation = astack.linkage.claimed_generation();
  if (word.is(shim::Turn::abandoned, generation))
    refusal = Errc::call_aborted;  // T6: not executed, but returned, to end the quarantine
  if (refusal == Errc::ok) {
    astack.linkage.unclaim(generation);  // T7: the client withdrew its call, against the protocol: it harms only itself
    return Served::nothing;
  }
  finish(astack, failed(refusal));
  return Served::returned;
}

/// Executes the call rung on `astack`, if there is one that nobody else has claimed. Runs on the E-stack that is (c)
/// associated with the A-stack, on a poller, on the thread of a trap listener, or inline; `context` is that thread's.
/// Takes no longer than the procedure.
template <Scanner kScanner = Scanner::estack>
inline Served serve(ServedAStack& astack, PrimedContext& context) noexcept {
  // Scan: is there a call of the next generation? Only a hint, but it saves the cost of a claim where there is no call.
  const std::uint64_t seen = astack.linkage.look();
  if (!shim::ServerLinkage::is_free(seen)) return Served::nothing;
  const std::uint64_t call = shim::ServerLinkage::claimed_after(seen);  // the turn and generation that a call must have
  const shim::AStackHead& head = *astack.head;
  const shim::CallWord hint = shim::load_word(head);
  if (!hint.same_turn(call) && !hint.same_turn(call ^ kCalledOrAbandoned)) return Served::nothing;
  if constexpr (kScanner == Scanner::poller) {
    if (hint.procedure() < astack.entry_count.load(std::memory_order_acquire) &&
        astack.entries[hint.procedure()].may_block) [[unlikely]] {
      leave_to_estack(astack, call >> 8);
      return Served::nothing;
    }
  }

  LRPC_STEP("server a");
  // a · claim (T5). From here on nobody else can execute this generation, and no later one can be claimed before we
  // release.
  if (!astack.linkage.claim_from(seen)) return Served::nothing;

  LRPC_STEP("server b");
  // b · load the word once; validate the copy.
  const shim::CallWord word = shim::load_word(head);
  if (!word.same_turn(call)) [[unlikely]]
    return decline(astack, word, Errc::ok);
  const std::size_t procedure = word.bits() >> 32 & 0xffff;
  if (refused(astack, procedure)) [[unlikely]]
    return decline(astack, word, why(astack));
  if constexpr (kScanner == Scanner::poller) {
    // If it may block, the client has changed the procedure since the scan; an honest one never does.
    if (astack.entries[procedure].may_block) [[unlikely]]
      return decline(astack, word, Errc::bad_procedure);
  }

  // ---- the point of no return ----
  LRPC_STEP("server d");
  // d · enter the entry stub directly: no message to examine, no queue. e · it copies, checks, runs, writes results.
  context.prime(astack, word);
  if (word.limited()) [[unlikely]]
    context.begin_limited(astack.limit->load(std::memory_order_relaxed));
  const std::uint16_t status = enter(astack.entries[procedure].stub, astack, context);
  if (context.anything_to_do() && !context.end_limited()) [[unlikely]] {
    finish_and_clean(astack, context, status);
  } else {
    finish(astack, status);
  }
  return Served::returned;
}

}  // namespace lrpc::server
