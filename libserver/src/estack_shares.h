// Which user may have how many of a server's E-stacks.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "lrpc/server/server.h"

namespace lrpc::server {

/// At least one, whatever the options say.
[[nodiscard]] inline std::size_t most_estacks(const ServerOptions& options) noexcept {
  return std::max<std::size_t>(options.max_estacks, 1);
}
/// ServerOptions::max_estacks_per_user. Not all of them: a procedure that runs cannot be interrupted, so that other
/// users' calls would wait for it.
[[nodiscard]] inline std::size_t most_estacks_of_user(const ServerOptions& options) noexcept {
  const std::size_t most = most_estacks(options);
  const std::size_t chosen = options.max_estacks_per_user.value_or(most - most / 8);
  return chosen == 0 ? most : std::min(chosen, most);
}

/// Who has how many, and who may have one more: at once, or from whom. Not thread-safe: under the pool's lock.
class EStackShares {
 public:
  explicit EStackShares(const ServerOptions& options)
      : most_(most_estacks(options)), most_of_user_(most_estacks_of_user(options)) {}

  void take(uid_t user) { ++held_[user]; }
  void give(uid_t user) {
    const auto found = held_.find(user);
    if (--found->second == 0) held_.erase(found);
  }
  [[nodiscard]] std::size_t held(uid_t user) const {
    const auto found = held_.find(user);
    return found != held_.end() ? found->second : 0;
  }

  /// Whether the user may have one more if there is one.
  [[nodiscard]] bool may_have_another(uid_t user) const { return held(user) < most_of_user_; }

  /// What each of those who have or want any may have when there are not enough.
  [[nodiscard]] std::size_t share(const std::set<uid_t>& wanting) const {
    std::size_t users = held_.size();
    for (const uid_t user : wanting) users += held_.contains(user) ? 0U : 1U;
    return std::max<std::size_t>(most_ / std::max<std::size_t>(users, 1), 1);
  }

  /// Whether an E-stack of `holder` that executes nothing is to leave its A-stack for a call of `user`. Between users:
  /// whoever has more than its share loses it to anybody, and whoever has less may take it from anybody.
  [[nodiscard]] bool may_take(uid_t user, uid_t holder, std::size_t share) const {
    if (user == holder) return true;
    return may_have_another(user) && (held(holder) > share || held(user) < share);
  }

 private:
  const std::size_t most_;
  const std::size_t most_of_user_;
  std::map<uid_t, std::size_t> held_;
};

}  // namespace lrpc::server
