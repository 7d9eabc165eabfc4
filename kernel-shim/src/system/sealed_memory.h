// Memory that two domains map: a memfd whose size nobody can change any more.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"

namespace lrpc::shim {

/// A zeroed memfd of `size` bytes, non-executable, close-on-exec, sealed against every change of size and of seals.
/// `name` is for people who look into /proc.
Result<UniqueFd> create_sealed_memory(const char* name, std::uint64_t size);

/// bad_message, with `what` in the text, unless `fd` is such a memfd, not of huge pages, can be written, and has `size`
/// bytes. Once sealed it cannot change behind the check.
Status check_sealed_memory(int fd, std::uint64_t size, const char* what);

}  // namespace lrpc::shim
