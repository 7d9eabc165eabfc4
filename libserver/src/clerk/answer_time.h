// How long a clerk waits for an answer of the nameserver.
#pragma once

#include <chrono>

namespace lrpc::server {

/// 10 s. Not a constant, so that a test of what follows a timeout can be quick. Set only while no thread exports or
/// withdraws.
extern std::chrono::milliseconds answer_time;

}  // namespace lrpc::server
