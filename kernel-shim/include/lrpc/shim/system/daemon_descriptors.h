// What descriptors a daemon has: none that it did not ask for, and as many as it may.
#pragma once

namespace lrpc::shim {

/// Raises the process's soft limit of descriptors to its hard one, for daemons whose peers take some each. Quietly does
/// what it can.
void raise_descriptor_limit() noexcept;

/// Closes every descriptor above the standard ones but `keep` (negative: none), which a parent may have left open: a
/// sandbox leaves its process what is open. Before anything else of the process has any.
void close_inherited(int keep) noexcept;

}  // namespace lrpc::shim
