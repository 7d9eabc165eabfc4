// Table II of The x-Kernel: how the work for a message divides among the components.
#pragma once

#include "session.h"

namespace lrpc::bench {

/// Prints the table. Without valgrind it only says so. Blocks for some seconds.
void profile(Session& session);

}  // namespace lrpc::bench
