// How long a clerk waits for what the nameserver has to say.
#pragma once

#include <chrono>

namespace lrpc::server {

/// 10 s. No constant, so that a test of what comes later need not take so long. Set while there is no Server.
extern std::chrono::milliseconds answer_time;

}  // namespace lrpc::server
