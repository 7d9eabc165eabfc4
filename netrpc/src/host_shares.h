// What each host takes of something that all have together.
#pragma once

#include <cstddef>

#include "lrpc/detail/shim/shares.h"
#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"

namespace lrpc::netrpc {

/// Under the monitor. Allocates only for more hosts than ever before.
using HostShares = shim::Shares<HostKey, Map<HostKey, std::size_t>>;

}  // namespace lrpc::netrpc
