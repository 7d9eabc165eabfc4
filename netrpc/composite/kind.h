// Composite protocols in the language of graphs.
#pragma once

#include <string>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "netrpc/composite/micro_protocol.h"

namespace lrpc::netrpc::composite {

/// A kind of protocol that a graph's text composes of these micro-protocols:
///
///     orderly = COMPOSITE { NUMBER; FIFO(patience = 50ms); } over udp;
[[nodiscard]] ProtocolKind composite_kind(std::string name, std::vector<MicroKind> kinds);

}  // namespace lrpc::netrpc::composite
