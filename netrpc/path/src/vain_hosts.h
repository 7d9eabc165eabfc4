// Limits how many hosts a user's imports may ask in vain, because the hosts are silent or refuse: the layers below keep
// a session to each host that is called, for minutes, and have some thousands of them. Policy alone: time is passed in.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>

#include "accounts.h"
#include "lrpc/netrpc/path/transport.h"

namespace lrpc::netpath {

/// Not thread-safe.
class VainHosts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Of all users at a time: a quarter of the sessions that a layer has.
  static constexpr std::size_t kMost = 1024;
  /// Until the layers below have forgotten the host: CHANNEL takes the longest, 2 packet_life + 2 give_up.
  static constexpr std::chrono::minutes kKept{4};

  /// Whether an import of `user` may ask `host`. If so, it counts as one that was asked in vain, until it has bound.
  /// Work: a pass over at most kMost hosts. May throw std::bad_alloc.
  [[nodiscard]] bool may_ask(uid_t user, HostAddress host, Time now) {
    std::erase_if(hosts_, [now](const auto& one) { return now - one.second >= kKept; });
    const auto of_user = [user](const auto& one) { return one.first.first == user; };
    const auto has = static_cast<std::size_t>(std::ranges::count_if(hosts_, of_user));
    const bool counts = hosts_.contains({user, host});
    if (!counts && has >= most_of_user(1, has, hosts_.size(), kMost)) return false;
    hosts_[{user, host}] = now;
    return true;
  }
  void bound(uid_t user, HostAddress host) noexcept { hosts_.erase({user, host}); }

 private:
  std::map<std::pair<uid_t, HostAddress>, Time> hosts_;  ///< And when each was asked last.
};

}  // namespace lrpc::netpath
