// Checks that a process has only one thread: Landlock, dropped capabilities and a seccomp filter with a listener apply
// to the calling thread only.
#pragma once

#include "lrpc/detail/shim/result.h"

namespace lrpc::sandbox {

/// Succeeds if the calling thread is the only one of its process. An error's text is a clause such as "this process has
/// 3 threads". Errors: invalid_argument (there are other threads), not_supported (it cannot be found out).
Status check_only_thread();

}  // namespace lrpc::sandbox
