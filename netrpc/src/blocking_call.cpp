#include "lrpc/netrpc/blocking_call.h"

#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc {

namespace {

/// Lies on the stack of the thread that waits.
class Waiting final : public Transaction {
 public:
  explicit Waiting(Host& host) : host_(host) {}
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

}  // namespace

Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout) {
  Host& host = session.protocol().host();
  Waiting waiting(host);
  const SessionRef keep(&session);
  session.call(std::move(request), waiting, timeout);
  // The protocol keeps the deadline: its timers complete the transaction. The thread only waits for that.
  if (!waiting.done() && !host.engine().wait(host, [&waiting] { return waiting.done(); }, Time::max())) {
    session.cancel(waiting);
    return Errc::call_aborted;
  }
  if (waiting.outcome() == Errc::ok) reply = waiting.take_reply();
  return waiting.outcome();
}

Errc call_and_wait(Session& session, Message request, Message& reply, Duration timeout) {
  const Shepherd inside(session.protocol().host().monitor());
  return call_and_wait_inside(session, std::move(request), reply, timeout);
}

}  // namespace lrpc::netrpc
