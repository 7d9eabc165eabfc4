// Landlock by direct system calls: not every system has a library for it, and Debian 12's headers know only ABI 2.
#pragma once

#include "lrpc/sandbox.h"

namespace lrpc::sandbox {

/// Denies the calling thread all access to files and TCP ports that `options` do not allow, all signals to outside
/// processes and all connections to their abstract sockets, as far as this kernel's Landlock can. Never fails: the
/// parts `files`, `tcp` and `others` of `report` say what holds, or why not. Needs no_new_privs.
void restrict_by_landlock(const Options& options, Report& report);

}  // namespace lrpc::sandbox
