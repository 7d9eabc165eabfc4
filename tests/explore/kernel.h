// The kernel of explored threads.
#pragma once

namespace testing_lrpc {

/// membarrier(2) fails, as behind a filter that was installed after the start.
extern bool membarrier_is_refused;

}  // namespace testing_lrpc
