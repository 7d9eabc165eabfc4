// Deadlines and cancellation of calls, for a stretch of code.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "lrpc/shim/call/limits.h"
#include "lrpc/shim/no_limit.h"

namespace lrpc {

/// Ends calls from outside: the calls of every CallScope that was made with it, outstanding or to come, are
/// call_cancelled once cancel() has been called, for good. A handle: copies are the same. Thread-safe.
class Cancellation {
 public:
  /// One that has not come. Throws std::bad_alloc.
  Cancellation() : word_(std::make_shared<shim::CancellationWord>()) {}

  /// Wakes every caller that sleeps in one of its scopes. Whoever polls or yields for a return looks within some
  /// microseconds. A call that has returned by then keeps its result. Never blocks; may be called in a signal handler.
  void cancel() const noexcept;
  [[nodiscard]] bool cancelled() const noexcept { return word_->cancelled.load(std::memory_order_acquire) != 0; }

 private:
  friend class CallScope;
  std::shared_ptr<shim::CancellationWord> word_;
};

/// A moment (of the steady clock), or a span of time from now on, or kNoLimit. Made of each without a word. A span that is
/// not over zero is over.
class CallDeadline {
 public:
  using Clock = std::chrono::steady_clock;
  CallDeadline(Clock::time_point until) noexcept : until_(until) {}  // NOLINT: implicit by design
  template <class Rep, class Period>
  CallDeadline(std::chrono::duration<Rep, Period> span) noexcept  // NOLINT: implicit by design
      : until_(after(std::chrono::duration<double>(span), span)) {}

  CallDeadline(NoLimit /*tag*/) noexcept : until_(Clock::time_point::max()) {}  // NOLINT: implicit by design

  /// time_point::max(): never, as kNoLimit.
  [[nodiscard]] Clock::time_point until() const noexcept { return until_; }

 private:
  /// However long: a span that the clock cannot hold is for ever.
  template <class Span>
  static Clock::time_point after(std::chrono::duration<double> about, Span span) noexcept {
    if (about >= std::chrono::nanoseconds(shim::Deadline::kMost)) return Clock::time_point::max();
    if (about <= std::chrono::nanoseconds(0)) return Clock::time_point();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
  }
  Clock::time_point until_;
};

/// CallScope scope(lrpc::fresh): nothing of what holds outside, nor of what the caller has left, holds inside.
struct Fresh {
  explicit Fresh() = default;
};
inline constexpr Fresh fresh{};

/// What holds for every call that this thread makes while it lives: `lrpc::CallScope scope{5ms};`.
///
/// - Every call must be over by its deadline: the wait for an A-stack, for the return, or for another host; at any
///   gate, also of calls that were started (Pending: with them what held when they were started stays with them, and
///   what holds for whoever finishes them holds too). One that is not ends as call_aborted, its A-stack in quarantine
///   until the server lets go of it; one that would begin later does so at once, without being made.
/// - The same when its Cancellation comes: the call ends as call_cancelled, also if its deadline has passed as well.
/// - Scopes nest: the earlier deadline and every cancellation hold. A binding's call_timeout holds beside them.
/// - What is left of the deadline goes along with each call (CallContext::remaining()). While a procedure runs, its
///   thread is in such a scope by itself: what it calls inherits what its caller has left. A cancellation does not go
///   along; CallContext::abandoned() tells the procedure.
/// - A one-way call is let go of when it is rung; the deadline bounds its wait for an A-stack.
/// - A sealed domain's call (trap gate) is not begun too late, and carries the deadline, but ends only when the server
///   answers: the kernel lets nobody out.
/// - Imports have a timeout of their own.
///
/// Belongs to the thread that made it, which must destroy its scopes in reverse order, as blocks do: not in a coroutine
/// across a co_await. Neither it nor Cancellation is needed by who sets no limits: then a call looks once at a
/// thread-local pointer.
class [[nodiscard]] CallScope {
 public:
  explicit CallScope(CallDeadline deadline) noexcept : CallScope(shim::calling_thread.limits, deadline, nullptr) {}
  /// Those with a Cancellation throw std::bad_alloc.
  explicit CallScope(const Cancellation& cancellation)
      : CallScope(shim::calling_thread.limits, kNever, &cancellation) {}
  CallScope(CallDeadline deadline, const Cancellation& cancellation)
      : CallScope(shim::calling_thread.limits, deadline, &cancellation) {}
  explicit CallScope(Fresh /*tag*/) noexcept : CallScope(nullptr, kNever, nullptr) {}
  CallScope(Fresh /*tag*/, CallDeadline deadline) noexcept : CallScope(nullptr, deadline, nullptr) {}
  CallScope(Fresh /*tag*/, const Cancellation& cancellation) : CallScope(nullptr, kNever, &cancellation) {}
  CallScope(Fresh /*tag*/, CallDeadline deadline, const Cancellation& cancellation)
      : CallScope(nullptr, deadline, &cancellation) {}
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope() { shim::calling_thread.limits = around_; }

  /// What the calling thread has left just now, by its scopes or by its caller: never below zero; nothing: no deadline.
  [[nodiscard]] static std::optional<std::chrono::nanoseconds> remaining() noexcept;
  /// Whether the calling thread's calls would be call_aborted or call_cancelled at once.
  [[nodiscard]] static bool over() noexcept;

 private:
  static constexpr auto kNever = std::chrono::steady_clock::time_point::max();
  CallScope(shim::CallLimits* from, CallDeadline deadline, const Cancellation* cancellation);

  shim::CallLimits* const around_;
  shim::CallLimits limits_;
};

}  // namespace lrpc
