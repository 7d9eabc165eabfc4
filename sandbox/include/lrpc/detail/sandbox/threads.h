// Whether a process has one thread: Landlock, capabilities and a seccomp listener concern the calling thread alone.
#pragma once

#include "lrpc/detail/shim/result.h"

namespace lrpc::sandbox {

/// Succeeds where the calling thread is the only one of its process. The text of an error is a clause, "this process
/// has 3 threads". Errors: invalid_argument (there are others), not_supported (nothing tells).
Status check_only_thread();

}  // namespace lrpc::sandbox
