// The tables of `lrpc-bench default` that are no situation's.
#pragma once

#include "session.h"

namespace lrpc::bench {

inline constexpr const char* kTwoClients = "2 clients against one";
/// Throughput of two clients, against what one client makes of the processor time that it takes.
void two_clients(Session& session, int rounds);

inline constexpr const char* kShortLived = "short-lived process";
/// A process that starts, imports, calls once and ends, against one that does nothing.
void short_lived(Session& session, int rounds);

}  // namespace lrpc::bench
