// Memory that two domains map: a memfd whose size can no longer be changed.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// An empty memfd that can be sealed: close-on-exec and, since Linux 6.3, never executable, which the administrator may
/// demand (vm.memfd_noexec).
Result<UniqueFd> create_memory(const char* name);

/// A zeroed one of `size` bytes, sealed against every change of size and of seals.
/// `name` is shown in /proc.
Result<UniqueFd> create_sealed_memory(const char* name, std::uint64_t size);

/// Fails with bad_message, with `what` in the text, unless `fd` is such a memfd, not of huge pages, writable, and of
/// `size` bytes. The seals keep that true after the check.
Status check_sealed_memory(int fd, std::uint64_t size, const char* what);

}  // namespace lrpc::shim
