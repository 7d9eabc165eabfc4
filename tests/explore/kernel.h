// The kernel, as the explored threads see it.
#pragma once

namespace testing_lrpc {

/// True: membarrier(2) fails, as under a seccomp filter that was installed after the start.
extern bool membarrier_is_refused;

}  // namespace testing_lrpc
