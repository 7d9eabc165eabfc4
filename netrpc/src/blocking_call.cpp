#include "lrpc/netrpc/blocking_call.h"

namespace lrpc::netrpc {

Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout) {
  Host& host = session.protocol().host();
  AwaitedReply waiting(host);
  const SessionRef keep(&session);
  session.call(std::move(request), waiting, timeout);
  // The protocol keeps the deadline: its timers complete the transaction. The thread only waits for that.
  if (!waiting.done() && !host.engine().wait(
                             host, [&waiting] { return waiting.done(); }, Time::max())) {
    session.cancel(waiting);
    return Errc::call_aborted;
  }
  if (waiting.outcome() == Errc::ok) reply = waiting.take_reply();
  return waiting.outcome();
}

Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout,
                          const std::function<bool()>& gone) {
  constexpr Duration kLook = std::chrono::milliseconds(250);
  if (gone()) return Errc::call_cancelled;
  Host& host = session.protocol().host();
  AwaitedReply waiting(host);
  const SessionRef keep(&session);
  session.call(std::move(request), waiting, timeout);
  const auto over = [&] { return waiting.done() || gone(); };
  while (!over()) (void)host.engine().wait(host, over, host.now() + kLook);
  if (!waiting.done()) {
    session.cancel(waiting);
    return Errc::call_cancelled;
  }
  reply = waiting.take_reply();
  return waiting.outcome();
}

Errc call_and_wait(Session& session, Message request, Message& reply, Duration timeout) {
  const Shepherd inside(session.protocol().host().monitor());
  return call_and_wait_inside(session, std::move(request), reply, timeout);
}

}  // namespace lrpc::netrpc
