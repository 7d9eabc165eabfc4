#include "daemon_limits.h"

#include <algorithm>

#include "lrpc/detail/shim/system/daemon_descriptors.h"

namespace lrpc::nameserver {
namespace {

/// Descriptors of the daemon itself: streams, loop, rings, log, policy, a bind that is being made.
constexpr std::uint64_t kOwn = 64;
/// Sockets that wait to be closed aside take at most this part of all, and at most so many (kernel-shim's aside.h).
constexpr std::uint64_t kPartToClose = 8;
constexpr std::uint64_t kMostToClose = 1024;
/// The same for those that a thread is closing.
constexpr std::uint64_t kPartBeingClosed = 16;
constexpr std::uint64_t kMostBeingClosed = 64;
/// Fewer connections than that are worth a warning: each server has one, and each client that imports.
constexpr std::size_t kFewConnections = 128;

}  // namespace

Limits within_descriptors(Limits limits, std::uint64_t descriptors) noexcept {
  const std::uint64_t not_there = kOwn + std::min(descriptors / kPartToClose, kMostToClose) +
                                  std::min(descriptors / kPartBeingClosed, kMostBeingClosed);
  const std::uint64_t there = descriptors > not_there ? descriptors - not_there : 0;
  const auto at_most = [](auto& limit, std::uint64_t most) {
    limit = std::max<std::uint64_t>(1, std::min<std::uint64_t>(most, limit));
  };
  at_most(limits.max_connections, there / 2 / 2);  // half: each has a socket and, of a server, a pidfd
  at_most(limits.max_binds, there / 4 / 2);        // a quarter: each has a region and a bell
  at_most(limits.max_fds_in_flight, there / 4);  // a quarter: sockets of connections that have ended, one each at most
  return limits;
}

std::string few_descriptors(const Limits& limits, std::uint64_t descriptors) {
  if (limits.max_connections >= kFewConnections) return {};
  return shim::few_descriptors("lrpcd", limits.max_connections,
                               "connections at a time, of servers and of clients that import", descriptors);
}

}  // namespace lrpc::nameserver
