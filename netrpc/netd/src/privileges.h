// What lrpc-netd gives away, so that whoever breaks it through the network finds little.
#pragma once

#include "lrpc/shim/result.h"

namespace lrpc::netd {

/// Closes every descriptor above the standard ones but `keep` (negative: none), which a parent may have left open.
void close_inherited(int keep) noexcept;

/// Gives up every capability but CAP_NET_RAW (that too, if `network` is false), for good, and with them those that exec
/// would bring. Of the calling thread: before any other is started. Errors: system_error.
Status drop_capabilities(bool network);

}  // namespace lrpc::netd
