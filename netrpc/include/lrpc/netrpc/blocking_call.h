// A call that blocks the calling thread until it has ended.
#pragma once

#include <functional>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// A transaction on the stack of a thread that waits until it is completed. Used under the monitor of `host`, which
/// outlives it.
class AwaitedReply : public Transaction {
 public:
  explicit AwaitedReply(Host& host) noexcept : host_(host) {}
  void completed(Errc outcome, Message reply) noexcept override {
    outcome_ = outcome;
    reply_ = std::move(reply);
    done_ = true;
    host_.engine().wake(host_);
  }
  [[nodiscard]] bool done() const noexcept { return done_; }
  [[nodiscard]] Errc outcome() const noexcept { return outcome_; }
  [[nodiscard]] Message take_reply() noexcept { return std::move(reply_); }

 private:
  Host& host_;
  bool done_ = false;
  Errc outcome_ = Errc::call_failed;
  Message reply_;
};

/// Sends `request` through `session` and blocks until the reply is there. The calling thread must not be inside the
/// monitor. `timeout`: as Session::call's. Errors: those of Transaction::completed(). On failure `reply` is untouched.
[[nodiscard]] Errc call_and_wait(Session& session, Message request, Message& reply, Duration timeout);
/// The same from inside the monitor, which is released while the thread waits.
[[nodiscard]] Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout);
/// The same for a caller that may go away meanwhile. `gone()` is called inside the monitor, before anything is sent,
/// whenever the thread wakes, and four times a second; it must not throw. When it returns true, the call ends with
/// call_cancelled. Any other end sets `reply`: for version_mismatch to the server's answer, else on failure to an empty
/// message.
[[nodiscard]] Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout,
                                        const std::function<bool()>& gone);

}  // namespace lrpc::netrpc
