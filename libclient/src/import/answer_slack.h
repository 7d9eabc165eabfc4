// How long the nameserver may take to answer, beyond what the importer is ready to wait for.
#pragma once

#include <chrono>

namespace lrpc::client {

/// 10 s. No constant, so that tests on a slow machine may wait longer. Set while nobody imports.
extern std::chrono::milliseconds answer_slack;

}  // namespace lrpc::client
