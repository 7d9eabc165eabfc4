// A table of `lrpc-bench layers`.
#pragma once

namespace lrpc::bench {

class Session;

/// What a round trip costs by the number of open sessions. Needs no privilege; raises the limit of descriptors.
void open_sessions(Session& session);

}  // namespace lrpc::bench
