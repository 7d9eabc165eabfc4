// Whose bindings have how many of a server's descriptors.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "account_share.h"
#include "lrpc/server/server.h"
#include "lrpc/shim/no_limit.h"

namespace lrpc::server {

/// ServerOptions::max_descriptors_per_user, as of now: the program may change its limit at any time.
[[nodiscard]] inline std::size_t most_descriptors_of_user(const ServerOptions& options) noexcept {
  if (options.max_descriptors_per_user) return *options.max_descriptors_per_user;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  return std::max<std::size_t>(limit.rlim_cur / 2, 1);
}

/// Thread-safe; shared with whatever it counts, which may outlive the server.
class DescriptorAccount {
 public:
  /// So many descriptors: it goes after they are closed.
  using Share = AccountShare<DescriptorAccount, std::size_t>;

  /// limit_reached if the user would have more than `most`.
  [[nodiscard]] Status room(uid_t user, std::size_t count, std::size_t most) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_users_.find(user);
    const std::size_t has = found != of_users_.end() ? found->second : 0;
    if (has <= most && count <= most - has) return {};
    return Error{Errc::limit_reached, "user " + std::to_string(user) + " has " + std::to_string(has) +
                                          " of the server's file descriptors and wants " + std::to_string(count) +
                                          " more, where it lets one user have " + std::to_string(most) +
                                          " (max_descriptors_per_user)"};
  }
  [[nodiscard]] static Share take(const std::shared_ptr<DescriptorAccount>& account, uid_t user, std::size_t count) {
    const std::lock_guard lock(account->mutex_);
    account->of_users_[user] += count;
    return Share(account, user, count);
  }

 private:
  friend Share;
  void give(uid_t user, std::size_t count) noexcept {
    const std::lock_guard lock(mutex_);
    const auto found = of_users_.find(user);
    found->second -= count;
    if (found->second == 0) of_users_.erase(found);
  }

  mutable std::mutex mutex_;
  std::map<uid_t, std::size_t> of_users_;
};

}  // namespace lrpc::server
