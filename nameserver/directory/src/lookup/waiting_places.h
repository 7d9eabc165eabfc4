// Which lookups wait for a name at the same time: so many of all users, of which each user has its fair share. Pure.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>

#include "lrpc/shim/most_of_one.h"

namespace lrpc::directory {

/// Not thread-safe. Users whose lookups do not wait are forgotten.
class WaitingPlaces {
 public:
  /// `most`: of all users. `most_of_user`: of one, while no other user has any.
  WaitingPlaces(std::size_t most, std::size_t most_of_user) noexcept : most_(most), most_of_user_(most_of_user) {}

  /// One more of this user's lookups is to wait. False: it may not, and nothing has changed.
  [[nodiscard]] bool take(uid_t user) {
    const auto known = by_user_.find(user);
    const std::size_t has = known == by_user_.end() ? 0 : known->second;
    if (has >= shim::quota_beside_others(most_of_user_, 1, has, all_, most_)) return false;
    ++by_user_[user];
    ++all_;
    return true;
  }
  /// One that has taken a place waits no more.
  void give_back(uid_t user) noexcept {
    const auto known = by_user_.find(user);
    if (--known->second == 0) by_user_.erase(known);
    --all_;
  }
  /// Those that have places.
  [[nodiscard]] std::size_t users() const noexcept { return by_user_.size(); }

 private:
  const std::size_t most_;
  const std::size_t most_of_user_;
  std::size_t all_ = 0;
  std::map<uid_t, std::size_t> by_user_;  ///< None is zero.
};

}  // namespace lrpc::directory
