// The x-Kernel paper's comparison with the sockets of its time: Table V and Figure 5.
#pragma once

#include "session.h"

namespace lrpc::bench {

/// Prints both for one placement, and draws the figure if plots are asked for. Blocks for about half a minute. Errors:
/// those of Field::add().
Status user_to_user(Session& session, Placement placement);

}  // namespace lrpc::bench
