// How much each host uses of a resource that all hosts share.
#pragma once

#include <cstddef>

#include "lrpc/detail/shim/shares.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"

namespace lrpc::netrpc {

/// Under the monitor. Allocates only when there are more hosts than ever before.
using HostShares = shim::Shares<HostKey, Map<HostKey, std::size_t>>;

}  // namespace lrpc::netrpc
