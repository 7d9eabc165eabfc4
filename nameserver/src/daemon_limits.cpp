#include "daemon_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace lrpc::nameserver {
namespace {

constexpr std::uint64_t kOwn = 64;  ///< The daemon's own: streams, loop, rings, log, policy, a bind being made.
constexpr std::uint64_t kPerConnection = 2;  ///< Socket and, of a server, pidfd.
constexpr std::uint64_t kPerBind = 2;        ///< Region and bell.
constexpr std::uint64_t kPerLeftUnread = 1;  ///< The socket of a connection that has ended, for one in flight at least.

}  // namespace

Limits within_descriptors(Limits limits, std::uint64_t descriptors) noexcept {
  const std::uint64_t wanted =
      kPerConnection * limits.max_connections + kPerBind * limits.max_binds + kPerLeftUnread * limits.max_fds_in_flight;
  const std::uint64_t there = descriptors > kOwn ? descriptors - kOwn : 0;
  if (wanted <= there) return limits;
  const auto fit = [&](std::size_t limit) { return std::max<std::size_t>(1, limit * there / wanted); };
  limits.max_connections = fit(limits.max_connections);
  limits.max_binds = fit(limits.max_binds);
  limits.max_fds_in_flight = fit(limits.max_fds_in_flight);
  return limits;
}

std::uint64_t descriptor_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace lrpc::nameserver
