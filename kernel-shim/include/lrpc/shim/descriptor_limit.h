// How many descriptors a daemon may have.
#pragma once

namespace lrpc::shim {

/// Raises the process's soft limit of descriptors to its hard one, for daemons whose peers take some each. Quietly does
/// what it can.
void raise_descriptor_limit() noexcept;

}  // namespace lrpc::shim
