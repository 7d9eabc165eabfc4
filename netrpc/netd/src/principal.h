// Who calls from another host, as far as the graph knows.
#pragma once

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netd {

/// The peer of a session from below, with the key that it has shown, if a layer knows other hosts by keys. Inside the
/// monitor. Throws std::bad_alloc.
[[nodiscard]] shim::Principal principal_of(netrpc::Session& session);

}  // namespace lrpc::netd
