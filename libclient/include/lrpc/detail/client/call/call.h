// The call path, client's half (LRPC §3.2; step numbers as in docs/ARCHITECTURE.md). Generated stubs use it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lrpc/detail/client/binding/binding_object.h"
#include "lrpc/detail/shim/call/gates.h"
#include "lrpc/detail/shim/call/limits.h"
#include "lrpc/detail/shim/call/linkage.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/handover.h"
#include "lrpc/detail/shim/system/processor.h"

namespace lrpc::client {

/// Steps 4 and 5 when no poller is trusted to serve the exchange gate, or none answered. `rung`: the word already says
/// CALLED; then only the procedure in `called` matters. Returns the call status (call_status in call_word.h).
std::uint16_t transfer_slow(BindingObject& binding, shim::LinkageRecord& linkage, shim::CallWord called,
                            bool rung) noexcept;
/// Before step 4 of a call that a scope or its binding's call_timeout limits: writes the time that is left into the
/// A-stack's slot, and marks the word (kLimited). Null if no time is left, or the calls are cancelled: then do not
/// ring; why_over() says why. Call::limit() handles the common case inline.
[[nodiscard]] shim::CallWord limit_call(const BindingObject& binding, shim::LinkageRecord& linkage,
                                        shim::CallWord called) noexcept;
/// Why the calling thread's calls end before they begin: call_cancelled or call_aborted.
[[nodiscard, gnu::cold]] Errc why_over() noexcept;
/// What a stub returns for an argument or a result that it refuses itself: the error, and `what` as its text, for
/// example "Files.Open: 'name' is longer than 255 bytes" (static storage). Without memory there is no text. Never
/// blocks.
[[nodiscard, gnu::cold, gnu::noinline]] detail::Failure refused(Errc code, const char* what) noexcept;
/// The same for a result that get_buffer() has refused; `what` is the text only if `code` is result_too_long.
[[nodiscard, gnu::cold, gnu::noinline]] detail::Failure not_copied(Errc code, const char* what) noexcept;
/// Call::failure() of a call that was made. From a local server, binding_revoked, message_too_long and call_lost become
/// call_failed, because the server had the call. For a remote binding they come from this machine's network domain.
[[nodiscard, gnu::cold]] Errc why_failed(const BindingObject& binding, std::uint16_t status) noexcept;
/// See Call::failure(). `procedure`: "Files.Open", of static storage.
[[nodiscard, gnu::cold, gnu::noinline]] detail::Failure failure_of(const BindingObject& binding,
                                                                   const shim::LinkageRecord& linkage,
                                                                   std::uint16_t status,
                                                                   const char* procedure) noexcept;
/// failure_of(), then step 7. `lease`: see Call.
[[nodiscard, gnu::cold, gnu::noinline]] detail::Failure end_failed(BindingObject& binding, AStackList::Lease* lease,
                                                                   shim::LinkageRecord& linkage, std::uint16_t status,
                                                                   const char* procedure) noexcept;
/// Step 7 for a call that was abandoned or broke the protocol: the A-stack is not put back.
void quarantine_astack(BindingObject& binding, shim::LinkageRecord& linkage) noexcept;

/// How many calls of this thread are outstanding, each nested in the one before (LRPC §3.2: the stack of linkages).
[[nodiscard]] inline unsigned nesting_depth() noexcept {
  unsigned depth = 0;
  for (const shim::LinkageRecord* at = shim::calling_thread.linkages; at != nullptr; at = at->below) ++depth;
  return depth;
}

/// One outstanding call. The constructor takes the A-stack, the destructor puts it back. Belongs to the thread that
/// made it; the calls of a thread nest like scopes.
class Call {
 public:
  /// 2 · take an A-stack: the one leased to this thread, or one from the class's LIFO.
  Call(BindingObject& binding, std::uint16_t astack_class) noexcept
      : binding_(binding),
        list_(binding.astacks(astack_class)),
        lease_(&list_.own_lease()),
        linkage_(AStackList::take_leased(*lease_)) {
    if (linkage_ == nullptr) [[unlikely]] {  // among other reasons, because the binding is revoked
      const BindingObject::Taken taken = binding.take_slow(list_);
      linkage_ = taken.record;
      lease_ = nullptr;
      why_not_ = taken.why_not;
      if (linkage_ == nullptr) return;
    }
    shim::take_over_call(binding_.id(), linkage_->astack.image);
    linkage_->below = shim::calling_thread.linkages;
    shim::calling_thread.linkages = linkage_;
    LRPC_STEP("client 3");
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// 7 · put the A-stack back on top.
  ~Call() {
    if (linkage_ == nullptr) [[unlikely]]
      return;
    LRPC_STEP("client 7");
    shim::calling_thread.linkages = linkage_->below;
    shim::hand_over_call(binding_.id(), linkage_->astack.image);
    if (put_aside_) [[unlikely]] {
      quarantine_astack(binding_, *linkage_);
    } else {
      list_.put(lease_, *linkage_);
    }
  }

  /// False: no A-stack could be taken; error() says why (BindingObject::take_slow()).
  [[nodiscard]] bool taken() const noexcept { return linkage_ != nullptr; }
  [[nodiscard]] Errc error() const noexcept { return why_not_; }

  /// 3 and 6 · where arguments are pushed and results copied from. The server may change it at any time.
  [[nodiscard]] std::byte* image() const noexcept { return linkage_->astack.image; }
  /// The tail, for arguments and results that do not fit the image.
  [[nodiscard]] std::byte* tail() const noexcept {
    binding_.note_tail_use();
    return linkage_->astack.tail;
  }

  /// 4 · ring, and 5 · wait. Returns the call status: 0, a declared error's index, or a failure (see failure()).
  /// May block for as long as the procedure runs, at most for what a CallScope or the binding's call_timeout leaves.
  [[nodiscard]] std::uint16_t transfer(std::uint16_t procedure) noexcept {
    LRPC_STEP("client 4");
    shim::CallWord called = next_call(procedure);
    shim::hand_over_call(binding_.id(), linkage_->astack.image);
    const std::uint16_t status = ring_and_wait(procedure, called);
    shim::take_over_call(binding_.id(), linkage_->astack.image);
    return status;
  }

  // The parts of transfer() at the exchange gate, for code that runs the server's half in between
  // (bench/instructions).

  /// The word of the next call on the A-stack.
  [[nodiscard]] shim::CallWord next_call(std::uint16_t procedure) noexcept {
    return linkage_->next_call(procedure, shim::current_processor());
  }
  /// Sends the time that this thread's scopes leave along with the call. False: no time is left, or the calls are
  /// cancelled; do not ring.
  [[nodiscard]] bool limit(shim::CallWord& called) noexcept {
    const shim::CallLimits* const limits = shim::calling_thread.limits;
    if (limits == nullptr) [[likely]]
      return true;
    // Also 0 if there are cancellations to check. transfer_slow() handles a binding's call_timeout: all calls of such a
    // binding go there.
    const std::int64_t left = limits->deadline.left_by_ticks();
    if (left == 0) [[unlikely]] {
      called = limit_call(binding_, *linkage_, called);
      return called != shim::CallWord();
    }
    // Before the ring's release, so that the server sees it with the call.
    linkage_->astack.limit->store(static_cast<std::uint64_t>(left), std::memory_order_relaxed);
    called = called.with(shim::CallWord::kLimited);
    return true;
  }
  /// 4 · rings by the exchange gate if the server's poller is trusted to scan the word (H7). False: not rung.
  [[nodiscard]] bool ring_if_polled(shim::CallWord called) noexcept {
    shim::AStackHead& head = *linkage_->astack.head;
    if (!linkage_->policy.trusts(head.polled.load(std::memory_order_relaxed))) [[unlikely]]
      return false;
    shim::ring_exchange(head, called);  // T1
    return true;
  }
  /// 5 · waits for the return of such a call. `procedure`: as in next_call(), so that the caller need not keep the
  /// word.
  [[nodiscard]] std::uint16_t wait(std::uint16_t procedure) noexcept {
    LRPC_STEP("client 5");
    shim::LinkageRecord& linkage = *linkage_;
    shim::CallWord word = shim::load_word(*linkage.astack.head);
    if (word.is_plain_success(linkage.last)) [[likely]] {
      LRPC_STEP("client 6");
      return 0;
    }
    if (shim::poll_rung(linkage, binding_.poll_limits(), word)) [[likely]] {
      LRPC_STEP("client 6");
      return word.status();
    }
    return slow(shim::CallWord::called_after(linkage.last, procedure, shim::kNoProcessor), true);
  }
  [[nodiscard]] shim::LinkageRecord& linkage() const noexcept { return *linkage_; }

  /// The Errc of a status that is neither 0 nor a declared error of the procedure. A forged status is call_failed.
  [[nodiscard]] static Errc failure(std::uint16_t status) noexcept;
  /// The same, as a stub returns it: with the text of the error that the procedure returned; or, if the server refused
  /// an argument, a handle or a result, or the procedure threw, with a text that names the procedure. Also does step 7,
  /// so that the code of calls that do not fail is shorter.
  [[nodiscard, gnu::always_inline]] detail::Failure failure(std::uint16_t status,
                                                            const char* procedure) const noexcept {
    shim::LinkageRecord& linkage = *linkage_;
    linkage_ = nullptr;  // here, not in end_failed(): that would force the Call into memory
    shim::hand_over_call(binding_.id(), linkage.astack.image);
    return end_failed(binding_, lease_, linkage, status, procedure);
  }

 private:
  [[nodiscard]] std::uint16_t ring_and_wait(std::uint16_t procedure, shim::CallWord called) noexcept {
    if (!limit(called)) [[unlikely]]
      return shim::call_status::kFailed | static_cast<std::uint16_t>(why_over());
    if (!ring_if_polled(called)) [[unlikely]]
      return slow(called, false);
    return wait(procedure);
  }
  [[nodiscard]] std::uint16_t slow(shim::CallWord called, bool rung) noexcept {
    const std::uint16_t status = transfer_slow(binding_, *linkage_, called, rung);
    put_aside_ = linkage_->quarantined;
    LRPC_STEP("client 6 slow");
    return status;
  }

  BindingObject& binding_;
  AStackList& list_;
  AStackList::Lease* lease_;              ///< From which the A-stack was taken, or null.
  mutable shim::LinkageRecord* linkage_;  ///< Null: there is none, or the call is over.
  Errc why_not_ = Errc::ok;
  bool put_aside_ = false;  ///< The A-stack goes to quarantine.
};

}  // namespace lrpc::client
