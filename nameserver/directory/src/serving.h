// What clients of this machine may use of lrpc-directory.
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/server.h"

namespace lrpc::directory {

/// Options of the Server, for a process that may open `descriptors` descriptors. Bindings leave it those that it needs
/// for etcd. One user gets at most an eighth of bindings and threads: otherwise two users could keep all others from
/// importing.
[[nodiscard]] ServerOptions serving_options(std::uint64_t descriptors);
/// A warning for the administrator if these options, for `descriptors` descriptors, allow few imports; otherwise empty.
[[nodiscard]] std::string few_imports(const ServerOptions& options, std::uint64_t descriptors);

}  // namespace lrpc::directory
