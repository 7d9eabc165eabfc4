// The tables of `lrpc-bench default` that do not belong to a situation.
#pragma once

#include "session.h"

namespace lrpc::bench {

inline constexpr const char* kTwoClients = "2 clients against one";
/// The throughput of two clients, relative to what one client achieves with the processor time that it uses.
void two_clients(Session& session, int rounds);

inline constexpr const char* kShortLived = "short-lived process";
/// A process that starts, imports, calls once and ends, compared with one that does nothing.
void short_lived(Session& session, int rounds);

}  // namespace lrpc::bench
