// TRACE: shows what goes through it. Can stand anywhere in a graph, above or below any protocol.
//
//       0.000012345 h1 trace push 201 10.0.0.1 -> 10.0.0.2, 46 bytes: 68 65 6c 6c 6f ...
#pragma once

#include <functional>
#include <string_view>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// Gets each line, without a newline. Called inside the monitor: must not throw, nor call into the graph.
using TraceSink = std::function<void(std::string_view line)>;

/// TRACE over anything. Options: `bytes` (how many of each message are shown), `lines` (at most so many in a second of
/// the host's time; the rest are counted and the count is shown). `sink`: where the lines go; none: standard error.
[[nodiscard]] ProtocolKind trace_kind(TraceSink sink = {});

}  // namespace lrpc::netrpc
