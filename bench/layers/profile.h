// Table II of The x-Kernel: which component the work of a message is in.
#pragma once

#include "session.h"

namespace lrpc::bench {

/// Prints it; needs valgrind, and says so where there is none. Blocks for some seconds.
void profile(Session& session);

}  // namespace lrpc::bench
