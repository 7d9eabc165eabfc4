// Where every value lies: the argument image of each procedure, its windows and tail, the A-stack classes that
// procedures of similar size share (LRPC §3.1, §5.2), and what the server's copies take of its stack.
#pragma once

#include "lrpc/stubgen/language/source.h"
#include "lrpc/stubgen/layout/model.h"

namespace lrpc::stubgen {

/// Fills in offsets, sizes and classes. What does not fit the runtime's limits is reported with its numbers.
/// The rules stand in docs/INTERFACE.md, "Layout".
void lay_out(Interface& interface, Diagnostics& diagnostics);

}  // namespace lrpc::stubgen
