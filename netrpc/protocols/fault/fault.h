// FAULT: loses, doubles, reorders, delays and damages what goes through it. Can stand anywhere in a graph: below a
// protocol it is a bad network, above one it is a bad protocol.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// FAULT over anything. Its options say what happens to messages; those beyond the `most` that it holds are lost.
/// What happens to calls, on push only: `loss` ends one as call_failed before it is sent, `delay` sends it later;
/// doubling or damaging a call would break what calls promise, and is done below CHANNEL instead.
[[nodiscard]] ProtocolKind fault_kind();

}  // namespace lrpc::netrpc
