// Which options of a server have a meaning.
#pragma once

#include "lrpc/server/server.h"
#include "lrpc/shim/result.h"

namespace lrpc::server {

/// invalid_argument, with the option's name, for the first that has none. The rule: lrpc/shim/no_limit.h.
[[nodiscard]] Status check_options(const ServerOptions& options);

}  // namespace lrpc::server
