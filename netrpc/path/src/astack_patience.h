// How long the call of another host waits for an A-stack here.
#pragma once

#include <chrono>

namespace lrpc::netpath {

/// 5 s. No constant, so that a test of what comes then need not take so long. Set while there is no broker.
extern std::chrono::milliseconds astack_patience;

}  // namespace lrpc::netpath
