// A table of `lrpc-bench layers`.
#pragma once

namespace lrpc::bench {

class Session;

/// The cost of a round trip against the number of open sessions. Needs no privilege; raises the limit of descriptors.
void open_sessions(Session& session);

}  // namespace lrpc::bench
