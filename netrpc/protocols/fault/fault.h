// FAULT: loses, doubles, reorders, delays and damages what goes through it. Can stand anywhere in a graph: below a
// protocol it is a bad network, above one it is a bad protocol.
#pragma once

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

/// FAULT over anything. What happens to messages: `loss`, `duplicate`, `reorder`, `corrupt` (rates), `delay` (each is
/// held for that long), `hold` (one that is reordered is held for that much longer); `on` push, demux or both; `seed`
/// (0: from the host's random numbers, themselves reproducible). At most `most` are held, further ones are lost.
/// What happens to calls, on push only: `loss` ends one as call_failed before it is sent, `delay` sends it later;
/// doubling or damaging a call would break what calls promise, and is done below CHANNEL instead.
[[nodiscard]] ProtocolKind fault_kind();

}  // namespace lrpc::netrpc
