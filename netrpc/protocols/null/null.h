// NULL: a layer that only passes messages through. It shows what a layer costs (RPC in the x-Kernel §4.1).
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// NULL over anything. No options.
[[nodiscard]] ProtocolKind null_kind();

}  // namespace lrpc::netrpc
