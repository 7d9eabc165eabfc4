// Where every value lies: the argument image of each procedure, its windows and tail, the A-stack classes that
// procedures of similar size share (LRPC §3.1, §5.2), and how much stack the server's copies take.
#pragma once

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Fills in offsets, sizes and classes. Reports what exceeds the runtime's limits, with the numbers.
/// The rules stand in docs/INTERFACE.md, "Layout".
void lay_out(Interface& interface, Diagnostics& diagnostics);

}  // namespace lrpc::stubgen
