// Deadlines and cancellation of calls, for a stretch of code.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "lrpc/detail/shim/call/limits.h"
#include "lrpc/detail/shim/no_limit.h"

namespace lrpc {

/// Ends calls from outside. After cancel(), all present and future calls in CallScopes with this Cancellation end as
/// call_cancelled. A handle: all copies are the same Cancellation. Thread-safe.
class Cancellation {
 public:
  /// A Cancellation that is not cancelled yet. Throws std::bad_alloc.
  Cancellation() : word_(std::make_shared<shim::CancellationWord>()) {}

  /// Wakes every caller that sleeps in one of its scopes. Callers that poll or yield notice it within some
  /// microseconds. A call that has returned before keeps its result. Never blocks; may be called in a signal handler.
  void cancel() const noexcept;
  [[nodiscard]] bool cancelled() const noexcept { return word_->cancelled.load(std::memory_order_acquire) != 0; }

 private:
  friend class CallScope;
  std::shared_ptr<shim::CancellationWord> word_;
};

/// A moment (of the steady clock), a span of time from now on, or kNoLimit. Each converts implicitly. A span of zero or
/// less has passed already.
class CallDeadline {
 public:
  using Clock = std::chrono::steady_clock;
  CallDeadline(Clock::time_point until) noexcept : until_(until) {}  // NOLINT: implicit by design
  template <class Rep, class Period>
  CallDeadline(std::chrono::duration<Rep, Period> span) noexcept  // NOLINT: implicit by design
      : until_(after(std::chrono::duration<double>(span), span)) {}

  CallDeadline(NoLimit /*tag*/) noexcept : until_(Clock::time_point::max()) {}  // NOLINT: implicit by design

  /// time_point::max(): no limit.
  [[nodiscard]] Clock::time_point until() const noexcept { return until_; }

 private:
  /// A span too long for the clock means no deadline.
  template <class Span>
  static Clock::time_point after(std::chrono::duration<double> about, Span span) noexcept {
    if (about >= std::chrono::nanoseconds(shim::Deadline::kMost)) return Clock::time_point::max();
    if (about <= std::chrono::nanoseconds(0)) return Clock::time_point();
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(span);
  }
  Clock::time_point until_;
};

/// CallScope scope(lrpc::fresh): inside, no outer scope and no deadline of the caller applies.
struct Fresh {
  explicit Fresh() = default;
};
inline constexpr Fresh fresh{};

/// Limits every call that this thread makes while the scope lives: `lrpc::CallScope scope{5ms};`.
///
/// - A call that is not over by the deadline ends as call_aborted, at any gate, whether it waits for an A-stack, for
///   its return or for another host. Its A-stack stays in quarantine until the server lets go of it. A call that would
///   begin after the deadline ends as call_aborted without being made.
/// - A started call (Pending) keeps the limits of the scopes in which it was started. The scopes of the thread that
///   finishes it apply, too.
/// - After cancel() of its Cancellation a call ends as call_cancelled, even if its deadline has passed as well.
/// - Scopes nest: the earliest deadline and every cancellation apply. So does the binding's call_timeout.
/// - Each call carries the time that is left (CallContext::remaining()). A procedure's thread is in a scope with this
///   deadline while it runs, so calls that it makes inherit it. Calls do not carry cancellations; the procedure learns
///   of them by CallContext::abandoned().
/// - A one-way call is over when it is rung; the deadline limits its wait for an A-stack.
/// - A sealed domain's call (trap gate) is not begun after the deadline, and carries it, but ends only when the server
///   answers, because the kernel does not release the caller earlier.
/// - Imports have a timeout of their own.
///
/// A scope belongs to the thread that made it. The thread must destroy its scopes in reverse order, as blocks do, so do
/// not keep one in a coroutine across a co_await. Without any scope a call costs one look at a thread-local pointer.
class [[nodiscard]] CallScope {
 public:
  explicit CallScope(CallDeadline deadline) noexcept : CallScope(shim::calling_thread.limits, deadline, nullptr) {}
  /// The constructors with a Cancellation throw std::bad_alloc.
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

  /// The time that the calling thread has left, by its scopes or by its caller; never below zero. nullopt: no deadline.
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
