// A call from a thread that wants to wait for it.
#pragma once

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

/// Sends `request` through `session` and blocks until the reply is there. The calling thread must not be inside the
/// monitor.
/// `timeout` zero: none. Errors: those of Transaction::completed(). On failure `reply` is untouched.
[[nodiscard]] Errc call_and_wait(Session& session, Message request, Message& reply, Duration timeout);
/// The same from inside the monitor, which is let go meanwhile.
[[nodiscard]] Errc call_and_wait_inside(Session& session, Message request, Message& reply, Duration timeout);

}  // namespace lrpc::netrpc
