// A procedure's context, as the call path sees it.
#pragma once

#include <cstdint>
#include <utility>

#include "lrpc/detail/server/call_context.h"

namespace lrpc::server {

/// One for each executing thread. Between two calls it still describes the last one.
class PrimedContext final : public CallContext {
 public:
  void prime(const ArgumentPlace& astack, shim::CallWord word) noexcept {
    place_ = &astack;
    word_ = word.bits();
  }
  /// The call carries a deadline; `left` is what it has left, in ns, by its caller's word. That is believed up to
  /// Deadline::kMost: a liar only hurts itself. Calls that this thread makes meanwhile inherit the deadline.
  void begin_limited(std::uint64_t left) noexcept {
    limits_.deadline.begin(left);
    around_ = std::exchange(shim::calling_thread.limits, &limits_);
    to_do_ = kEndLimited;
  }
  /// Called now and then, between calls (Deadline::note_clock).
  void note_clock() noexcept { limits_.deadline.note_clock(); }
  void note_clock(shim::Moment now) noexcept { limits_.deadline.note_clock(now); }
  /// Whether anything is to be done at the end of the call: one check for everything that few calls need.
  [[nodiscard]] bool anything_to_do() const noexcept { return to_do_ != 0; }
  /// If so: restores the thread's limits, if that is all. False: call end() and done() instead.
  [[nodiscard]] bool end_limited() noexcept {
    if (to_do_ != kEndLimited) return false;
    shim::calling_thread.limits = around_;
    to_do_ = 0;
    return true;
  }
  /// Before the return. False: abandoned() told the procedure that the deadline has passed, so what it returned is no
  /// result, even if the caller still waits.
  [[nodiscard]] bool end() noexcept {
    if ((to_do_ & kEndLimited) != 0) shim::calling_thread.limits = around_;
    return (to_do_ & kToldOver) == 0;
  }
  /// After the return: frees the stubs' scratch memory.
  void done() noexcept {
    if ((to_do_ & kGiveScratchBack) != 0) [[unlikely]]
      scratch_.reset();
    to_do_ = 0;
  }
};

}  // namespace lrpc::server
