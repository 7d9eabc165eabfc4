#include "serving.h"

#include <algorithm>

#include "etcd/etcd.h"
#include "lookup/lookup_service.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"

namespace lrpc::directory {
namespace {

/// Descriptors for etcd connections, each with what the resolver needs while it is made, and as many again for all
/// else.
constexpr std::uint64_t kOwn = 4 * (2 * Etcd::kMostConnections + LookupService::kMostWaiting);
constexpr std::uint64_t kOfBinding = 2;
constexpr std::uint64_t kMostOfUser = 256;
/// Bindings of one user; fewer than this are worth a warning.
constexpr std::uint64_t kFewOfUser = 32;
/// One user gets at most an eighth.
constexpr std::uint64_t kUsers = 8;
/// Calls of one user's lookups at a time: those that wait, and those that ask etcd or queue for that. Each takes a
/// thread.
constexpr std::uint64_t kCallsOfUser = LookupService::kMostWaitingOfUser + 2 * LookupService::kMostAskingOfUser;

}  // namespace

ServerOptions serving_options(std::uint64_t descriptors) {
  ServerOptions options;
  options.max_estacks = kUsers * kCallsOfUser;
  options.max_estacks_per_user = kCallsOfUser;
  const std::uint64_t left = descriptors - std::min(kOwn, descriptors / 2);
  options.max_bindings = std::clamp<std::uint64_t>(left / kOfBinding, 1, options.max_bindings);
  options.max_bindings_per_user = std::clamp<std::uint64_t>(options.max_bindings / kUsers, 1, kMostOfUser);
  options.max_grown_astacks_per_user = 0;  // a client makes one call at a time
  return options;
}

std::string few_imports(const ServerOptions& options, std::uint64_t descriptors) {
  if (options.max_bindings_per_user >= kFewOfUser) return {};
  return shim::few_descriptors("lrpc-directory", options.max_bindings_per_user,
                               "imports of names without a host at a time by one user", descriptors);
}

}  // namespace lrpc::directory
