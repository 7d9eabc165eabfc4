// Calls that are started now and finished later, and one-way calls. Step numbers as in call.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lrpc/detail/client/call/call.h"
#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/stub_access.h"

namespace lrpc {

class CompletionQueue;
template <class Outcome>
class Finishing;

namespace client {

struct QueueLink;

/// One call between its start and its finish: owns the A-stack. Generated starters and lrpc::Pending use it. Move-only;
/// belongs to one thread at a time, which need not be the one that started it.
class PendingCall {
 public:
  /// 2 · take an A-stack: one of this thread's spares, or one from the class's LIFO. May wait for one, by the binding's
  /// supply rule. Without one, taken() is false and error() says why.
  PendingCall(BindingObject& binding, std::uint16_t astack_class) noexcept
      : binding_(&binding), linkage_(binding.astacks(astack_class).take_spare()) {
    if (linkage_ == nullptr) [[unlikely]]
      take_slow(astack_class);
    if (linkage_ != nullptr) shim::take_over_call(binding_->id(), linkage_->astack.image);
    LRPC_STEP("client 3 started");
  }
  /// A call that cannot be made, and why.
  explicit PendingCall(Errc error) noexcept : error_(error) {}
  /// The same, with a text for refused().
  PendingCall(Errc error, const char* what) noexcept : called_(address_of(what)), error_(error) {}
  PendingCall(PendingCall&& other) noexcept
      : binding_(other.binding_),
        linkage_(std::exchange(other.linkage_, nullptr)),
        called_(other.called_),
        error_(std::exchange(other.error_, Errc::invalid_argument)),
        queue_(std::exchange(other.queue_, nullptr)) {}
  PendingCall& operator=(PendingCall&& other) noexcept {
    if (this == &other) return *this;
    if (linkage_ != nullptr) [[unlikely]]
      abandon();
    binding_ = other.binding_;
    linkage_ = std::exchange(other.linkage_, nullptr);
    called_ = other.called_;
    error_ = std::exchange(other.error_, Errc::invalid_argument);
    queue_ = std::exchange(other.queue_, nullptr);
    return *this;
  }
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;
  /// Abandons a call that was not finished (T15): its A-stack stays in quarantine until the server returns it.
  ~PendingCall() {
    if (linkage_ != nullptr) [[unlikely]]
      abandon();
  }

  [[nodiscard]] bool taken() const noexcept { return linkage_ != nullptr; }
  /// Why there is no call: no_astack, binding_revoked, call_aborted, call_cancelled, or the error that the starter
  /// found; invalid_argument once it was finished or moved from.
  [[nodiscard]] Errc error() const noexcept { return error_; }
  /// The same, with a text if the starter has refused an argument.
  [[nodiscard, gnu::cold, gnu::noinline]] lrpc::detail::Failure why_not_started() const noexcept;
  /// As in Call.
  [[nodiscard]] lrpc::detail::Failure failure(std::uint16_t status, const char* procedure) const noexcept {
    return failure_of(*binding_, *linkage_, status, procedure);
  }
  /// 3 and 6 · as in Call.
  [[nodiscard]] std::byte* image() const noexcept { return linkage_->astack.image; }
  [[nodiscard]] std::byte* tail() const noexcept {
    binding_->note_tail_use();
    return linkage_->astack.tail;
  }

  /// 4 · ring. Never blocks, except at the trap gate, where it returns when the call has returned. False: nothing was
  /// rung, because no time is left, the calls are cancelled, or nobody could serve the call; error() says why.
  /// `may_block`: no poller serves the procedure, so do not rely on one to take the call.
  bool ring(std::uint16_t procedure, bool may_block = false) noexcept {
    shim::LinkageRecord& linkage = *linkage_;
    shim::AStackHead& head = *linkage.astack.head;
    LRPC_STEP("client 4 started");
    called_ = linkage.next_call(procedure, shim::current_processor());
    shim::hand_over_call(binding_->id(), linkage.astack.image);
    if (shim::calling_thread.limits != nullptr) [[unlikely]]
      return ring_slow(may_block);
    if (may_block || !linkage.policy.trusts(head.polled.load(std::memory_order_relaxed))) [[unlikely]]  // H7
      return ring_slow(may_block);
    return ring_polled();
  }
  /// 4 · T1: rings by a plain store, because the slot says that a poller scans it. But the poller may be in another
  /// client's long procedure: without an E-stack the call would wait as long.
  bool ring_polled() noexcept {
    shim::AStackHead& head = *linkage_->astack.head;
    if (!shim::ring_for_poller(head, called_) || head.attached.load(std::memory_order_relaxed) == 0) [[unlikely]]
      look_again();  // T4
    return true;
  }

  /// Whether finishing would not wait: the call has returned, or never will, or its call_timeout or the scopes in which
  /// it was started allow no more waiting. One load of the word; no system call.
  [[nodiscard]] bool ready() const noexcept {
    if (linkage_ == nullptr || binding_->revoked()) [[unlikely]]
      return true;
    if (binding_->remote()) [[unlikely]]
      return remote_ready();
    return answered() || (linkage_->limited && given_up(*linkage_));
  }
  static constexpr std::chrono::nanoseconds kLongestWait{shim::Deadline::kMost};
  /// 5 · wait, at most `limit`, without giving up the call. True: ready().
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds limit) noexcept;
  /// 5 · wait. Returns the call status. Blocks for as long as the procedure runs, at most for what is left of the
  /// binding's call_timeout (from the ring on) and of CallScopes. Precondition: rung.
  [[nodiscard]] std::uint16_t wait() noexcept {
    LRPC_STEP("client 5 started");
    shim::LinkageRecord& linkage = *linkage_;
    if (binding_->revoked() || queue_ != nullptr) [[unlikely]]
      return waited(wait_slow());
    const shim::CallWord word = shim::load_word(*linkage.astack.head);
    if (!word.same_turn(linkage.last)) [[unlikely]]
      return waited(wait_slow());
    return waited(word.status());
  }
  /// 7 · puts the A-stack back, or into quarantine if the call has not ended.
  void put_back() noexcept {
    LRPC_STEP("client 7 started");
    shim::LinkageRecord& linkage = *std::exchange(linkage_, nullptr);
    shim::hand_over_call(binding_->id(), linkage.astack.image);
    error_ = Errc::invalid_argument;
    if (linkage.limited) [[unlikely]]
      forget_limits(linkage);
    if (linkage.quarantined) [[unlikely]]
      return binding_->quarantine(linkage);
    binding_->astacks(linkage.astack.astack_class).put_spare(linkage);
  }
  /// Ends a one-way call that was rung, without waiting: its A-stack is in quarantine until the server has returned it.
  void leave() noexcept {
    shim::hand_over_call(binding_->id(), linkage_->astack.image);
    leave_rung();
  }

  /// The whole A-stack, for code that moves packed images.
  [[nodiscard]] const shim::AStack& placed() const noexcept {
    if (linkage_->astack.tail != nullptr) binding_->note_tail_use();
    return linkage_->astack;
  }
  [[nodiscard]] shim::LinkageRecord& linkage() const noexcept { return *linkage_; }
  /// The A-stack's number in the region.
  [[nodiscard]] std::uint32_t astack() const noexcept { return linkage_->index; }

 private:
  friend class lrpc::CompletionQueue;
  [[nodiscard]] std::uint16_t waited(std::uint16_t status) const noexcept {
    shim::take_over_call(binding_->id(), linkage_->astack.image);
    return status;
  }
  /// Whether the word says that the call has returned, or never will.
  [[nodiscard]] bool answered() const noexcept {
    const shim::CallWord word = shim::load_word(*linkage_->astack.head);
    return !word.same_turn(called_.bits()) || word.revoked();
  }
  /// A call that never had an A-stack has no call word: called_ holds the text for refused() instead, which saves a
  /// member.
  [[nodiscard]] static shim::CallWord address_of(const char* what) noexcept {
    return shim::CallWord(reinterpret_cast<std::uintptr_t>(what));
  }
  void take_slow(std::uint16_t astack_class) noexcept;
  bool not_rung(Errc why) noexcept;
  [[nodiscard]] bool ring_slow(bool may_block) noexcept;
  [[nodiscard]] bool limit() noexcept;
  [[nodiscard]] static bool given_up(const shim::LinkageRecord& linkage) noexcept;
  static void forget_limits(shim::LinkageRecord& linkage) noexcept;
  [[nodiscard]] bool execute_here() noexcept;
  [[nodiscard]] bool ring_remote() noexcept;
  [[nodiscard]] bool remote_ready() const noexcept;
  void look_again() noexcept;
  [[nodiscard]] std::uint16_t wait_slow() noexcept;
  [[nodiscard]] std::uint16_t wait_for_status() noexcept;
  void quarantine_if_let_go() noexcept;
  [[nodiscard]] bool poll_for_return() noexcept;
  void leave_rung() noexcept;
  void abandon() noexcept {
    shim::hand_over_call(binding_->id(), linkage_->astack.image);
    abandon_rung();
  }
  void abandon_rung() noexcept;
  void stop_watching() noexcept;

  BindingObject* binding_ = nullptr;
  shim::LinkageRecord* linkage_ = nullptr;
  shim::CallWord called_;  ///< Without a binding: see address_of().
  Errc error_ = Errc::invalid_argument;
  QueueLink* queue_ = nullptr;  ///< The link to the completion queue that watches it.
};

/// Puts a call's A-stack back at the end of the scope, after its results have been copied.
class PutBack {
 public:
  explicit PutBack(PendingCall& call) noexcept : call_(call) {}
  PutBack(const PutBack&) = delete;
  PutBack& operator=(const PutBack&) = delete;
  ~PutBack() { call_.put_back(); }

 private:
  PendingCall& call_;
};

}  // namespace client

/// A procedure call that was started: `auto sum = client.start().Add(1, 2);`. Generated starters return it; the
/// generated class `Outcome` takes the results.
///
/// Owns the call and its A-stack. Move-only; one thread at a time may use it, any thread may finish it. It may outlive
/// its binding: then finish() gives its results if the call returned before the binding ended, and call_failed
/// otherwise. But no thread may be in one of its members while the binding is destroyed. `in` arguments were copied
/// when the call was started. What was passed by reference (inout arguments, buffers for results) must stay where it is
/// until finish() or the destructor; only finish() changes it.
template <class Outcome>
class [[nodiscard]] Pending {
 public:
  using Result = typename Outcome::Result_;

  /// For generated starters.
  Pending(Errc error) noexcept : call_(error) {}  // NOLINT: implicit by design
  Pending(Errc error, const char* what) noexcept : call_(error, what) {}
  Pending(client::PendingCall call, Outcome outcome) noexcept : call_(std::move(call)), outcome_(outcome) {}

  /// True once finish() would not wait. One load, no system call. Never blocks.
  [[nodiscard]] bool ready() const noexcept { return call_.ready(); }
  /// Waits until ready(), at most `limit`; not at all if that is zero or less. The call goes on in any case. Blocks.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds limit) noexcept { return call_.wait_for(limit); }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> limit) noexcept {
    // Not every span fits nanoseconds.
    const std::chrono::duration<double, std::nano> about = limit;
    if (about >= client::PendingCall::kLongestWait) return call_.wait_for(client::PendingCall::kLongestWait);
    if (about.count() <= 0) return call_.wait_for(std::chrono::nanoseconds(0));
    return call_.wait_for(std::chrono::duration_cast<std::chrono::nanoseconds>(limit));
  }
  /// Waits for the return and gives what the synchronous stub would have returned. If the call could not be started,
  /// gives the reason (argument_too_long, no_astack, ...). Once only: afterwards it gives invalid_argument. Blocks for
  /// as long as the procedure runs, at most for what is left of the binding's call_timeout (from the start on), of the
  /// CallScopes in which the call was started, and of those of this thread.
  Result finish() noexcept {
    if (!call_.taken()) [[unlikely]]
      return call_.why_not_started();
    const std::uint16_t status = call_.wait();
    const client::PutBack at_end(call_);
    return outcome_(status, call_);
  }
  /// For co_await: `co_await std::move(pending).on(queue)` gives what finish() gives, without blocking. See
  /// CompletionQueue.
  [[nodiscard]] Finishing<Outcome> on(CompletionQueue& queue) && noexcept;

 private:
  friend class CompletionQueue;
  friend struct detail::StubAccess;
  [[nodiscard]] client::PendingCall& call() noexcept { return call_; }

  client::PendingCall call_;
  Outcome outcome_{};
};

}  // namespace lrpc
