// How long the nameserver may take to answer an import, beyond the import's own timeout.
#pragma once

#include <chrono>

namespace lrpc::client {

/// 10 s. A variable, so that tests on a slow machine can wait longer. Change it only while nobody imports.
extern std::chrono::milliseconds answer_slack;

}  // namespace lrpc::client
