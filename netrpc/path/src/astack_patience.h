// How long the call of another host waits for an A-stack here.
#pragma once

#include <chrono>

namespace lrpc::netpath {

/// 5 s. Not a constant, so that tests can shorten it. Set it only while there is no broker.
extern std::chrono::milliseconds astack_patience;

}  // namespace lrpc::netpath
