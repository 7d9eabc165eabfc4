// What clients of this machine may take of lrpc-directory.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/server.h"

namespace lrpc::directory {

/// Options of the Server, for a process that may open so many descriptors. Bindings leave it what it needs for etcd.
/// One user has at most an eighth of them, and of the threads: else two users could keep all others from importing.
[[nodiscard]] ServerOptions serving_options(std::uint64_t descriptors);
/// What the administrator should know if these options, for so many descriptors, leave room for few; else nothing.
[[nodiscard]] std::string few_imports(const ServerOptions& options, std::uint64_t descriptors);

}  // namespace lrpc::directory
