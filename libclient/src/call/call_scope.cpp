#include "lrpc/detail/client/call/call_scope.h"

#include <algorithm>
#include <climits>

#include "lrpc/detail/shim/call/step.h"
#include "lrpc/detail/shim/system/futex.h"

namespace lrpc {

void Cancellation::cancel() const noexcept {
  LRPC_STEP("T19");
  // T19: a sleeping caller expects 0 here and is woken; a caller that has not looked yet does not sleep.
  word_->cancelled.store(1, std::memory_order_seq_cst);
  shim::futex_wake_private(word_->cancelled, INT_MAX);
}

CallScope::CallScope(shim::CallLimits* from, CallDeadline deadline, const Cancellation* cancellation)
    : around_(shim::calling_thread.limits) {
  CallDeadline::Clock::time_point until = deadline.until();
  if (from != nullptr) until = std::min(until, from->deadline.until());
  if (until != kNever) limits_.deadline = shim::Deadline(until);
  if (from != nullptr) limits_.set_cancellations(from->cancellations());
  if (cancellation != nullptr) {
    limits_.set_cancellations(
        std::make_shared<const shim::Cancellations>(shim::Cancellations{cancellation->word_, limits_.cancellations()}));
  }
  // Without any limit, calls need not check.
  const bool any = limits_.deadline.ever() || limits_.cancellations() != nullptr;
  shim::calling_thread.limits = any ? &limits_ : nullptr;
}

std::optional<std::chrono::nanoseconds> CallScope::remaining() noexcept {
  if (shim::calling_thread.limits == nullptr || !shim::calling_thread.limits->deadline.ever()) return std::nullopt;
  // By the clock, not by ticks, as a call's wait is: after call_aborted nothing is left.
  const auto left = shim::calling_thread.limits->deadline.until() - CallDeadline::Clock::now();
  return std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0));
}

bool CallScope::over() noexcept {
  if (shim::calling_thread.limits == nullptr) return false;
  return shim::calling_thread.limits->deadline.until() <= CallDeadline::Clock::now() ||
         shim::cancelled(shim::calling_thread.limits->cancellations().get());
}

}  // namespace lrpc
