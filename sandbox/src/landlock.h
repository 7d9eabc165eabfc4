// Landlock by bare system calls: its library is not everywhere, and Debian 12's headers know ABI 2 only.
#pragma once

#include "lrpc/sandbox.h"

namespace lrpc::sandbox {

/// Takes everything from the calling thread that `options` do not leave to it. No error: `report` says of `files`,
/// `tcp` and `others` why something does not hold. Needs no_new_privs.
void restrict_by_landlock(const Options& options, Report& report);

}  // namespace lrpc::sandbox
