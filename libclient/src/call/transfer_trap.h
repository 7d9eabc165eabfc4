// The trap gate, the client's half of steps 4 and 5.
#pragma once

#include <cstdint>

#include "lrpc/detail/client/call/call.h"

namespace lrpc::client {

/// Rings and traps; returns the call status. `rung`: the word already says CALLED.
std::uint16_t transfer_trap(BindingObject& binding, shim::LinkageRecord& linkage, shim::CallWord called,
                            bool rung) noexcept;

}  // namespace lrpc::client
