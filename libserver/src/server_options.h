// Which options of a server have a meaning, and what some of them come to.
#pragma once

#include <algorithm>
#include <cstddef>

#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/result.h"

namespace lrpc::server {

/// invalid_argument, with the option's name, for the first that has none. The rule: lrpc/detail/shim/no_limit.h.
[[nodiscard]] Status check_options(const ServerOptions& options);

/// At least one: a server that is asked for none does not export anything (check_options()).
[[nodiscard]] inline std::size_t most_estacks(const ServerOptions& options) noexcept {
  return std::max<std::size_t>(options.max_estacks, 1);
}
/// ServerOptions::max_estacks_per_user. Not all of them: a procedure that runs cannot be interrupted, so that other
/// users' calls would wait for it.
[[nodiscard]] inline std::size_t most_estacks_of_user(const ServerOptions& options) noexcept {
  const std::size_t most = most_estacks(options);
  return std::min(options.max_estacks_per_user.value_or(most - most / 8), most);
}

}  // namespace lrpc::server
