#include "server_options.h"

#include <chrono>
#include <initializer_list>
#include <utility>

#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::server {

/// The addresses of a process are 128 TiB.
constexpr std::uint64_t kMostStack = std::uint64_t{1} << 40;

Status check_options(const ServerOptions& options) {
  constexpr std::size_t kUnset = 1;  // stands for an option that chooses by itself
  const std::initializer_list<std::pair<const char*, std::uint64_t>> counts = {
      {"ServerOptions::estack_size", options.estack_size},
      {"ServerOptions::max_estacks", options.max_estacks},
      {"ServerOptions::max_estacks_per_user", options.max_estacks_per_user.value_or(kUnset)},
      {"ServerOptions::max_bindings", options.max_bindings},
      {"ServerOptions::max_bindings_per_client_process", options.max_bindings_per_client_process},
      {"ServerOptions::max_bindings_per_user", options.max_bindings_per_user},
      {"ServerOptions::max_region_bytes_per_user", options.max_region_bytes_per_user},
      {"ServerOptions::max_descriptors_per_user", options.max_descriptors_per_user.value_or(kUnset)},
      {"ServerOptions::max_handles_per_user", options.max_handles_per_user},
  };
  for (const auto& [name, count] : counts) {
    if (Status sound = shim::check_count(name, count); !sound) return sound;
  }
  if (Status sound = shim::check_span("ServerOptions::estack_idle", options.estack_idle); !sound) return sound;
  if (Status sound = shim::check_wait("ServerOptions::poll_window", options.poll_window); !sound) return sound;
  if (options.poll_window > std::chrono::seconds(1))
    return Error{Errc::invalid_argument, "ServerOptions::poll_window: at most a second"};
  if (options.estack_size > kMostStack)
    return Error{Errc::invalid_argument, "ServerOptions::estack_size: at most a TiB, more than any thread can have"};
  return {};
}

}  // namespace lrpc::server
