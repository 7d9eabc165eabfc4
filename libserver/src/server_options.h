// Checks the options of a server, and computes limits from some of them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::server {

/// invalid_argument, with the name of the first option whose value has no meaning. The rule:
/// lrpc/detail/shim/no_limit.h.
[[nodiscard]] Status check_options(const ServerOptions& options);

/// At least one, although a server with max_estacks 0 exports nothing (check_options()).
[[nodiscard]] inline std::size_t most_estacks(const ServerOptions& options) noexcept {
  return std::max<std::size_t>(options.max_estacks, 1);
}
/// ServerOptions::max_estacks_per_user. Not all of them by default: a running procedure cannot be interrupted, and
/// other users' calls would wait for it.
[[nodiscard]] inline std::size_t most_estacks_of_user(const ServerOptions& options) noexcept {
  const std::size_t most = most_estacks(options);
  return std::min(options.max_estacks_per_user.value_or(most - most / 8), most);
}

}  // namespace lrpc::server
