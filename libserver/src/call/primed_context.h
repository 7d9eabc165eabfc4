// A procedure's context, as the call path sees it.
#pragma once

#include <cstdint>
#include <utility>

#include "lrpc/detail/server/call_context.h"

namespace lrpc::server {

/// One per executing thread. Between two calls it still tells the last one's.
class PrimedContext final : public CallContext {
 public:
  /// Primes the context for one call.
  void prime(const ArgumentPlace& astack, shim::CallWord word) noexcept {
    place_ = &astack;
    word_ = word.bits();
  }
  /// The call carries a deadline, and `left` is what its caller says that it has left: believed as far as
  /// Deadline::kMost, for a liar can only hurry itself. What this thread calls meanwhile inherits it.
  void begin_limited(std::uint64_t left) noexcept {
    limits_.deadline.begin(left);
    around_ = std::exchange(shim::calling_thread.limits, &limits_);
    to_do_ = kEndLimited;
  }
  /// Now and then, between calls (Deadline::note_clock).
  void note_clock() noexcept { limits_.deadline.note_clock(); }
  void note_clock(shim::Moment now) noexcept { limits_.deadline.note_clock(now); }
  /// Whether anything is to be done at the end of the call: one look for all that few calls need.
  [[nodiscard]] bool anything_to_do() const noexcept { return to_do_ != 0; }
  /// Then: does it, if it is only that the call carried a deadline; else end() and done() are to do it.
  [[nodiscard]] bool end_limited() noexcept {
    if (to_do_ != kEndLimited) return false;
    shim::calling_thread.limits = around_;
    to_do_ = 0;
    return true;
  }
  /// Before the return. False: what the procedure has returned is no result, for it was told that the deadline is over,
  /// should the caller still be there to take it.
  [[nodiscard]] bool end() noexcept {
    if ((to_do_ & kEndLimited) != 0) shim::calling_thread.limits = around_;
    return (to_do_ & kToldOver) == 0;
  }
  /// And after it: what a stub copied is given back.
  void done() noexcept {
    if ((to_do_ & kGiveScratchBack) != 0) [[unlikely]]
      scratch_.reset();
    to_do_ = 0;
  }
};

}  // namespace lrpc::server
