// Counts the threads that strangers hold up (aside.h), against the limits per user and for all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "aside.h"

namespace lrpc::shim {

/// The user of each thread that is held up.
class WaitingThreads {
 public:
  WaitingThreads() { of_users_.reserve(kMostAtOnce); }
  [[nodiscard]] bool has_none(uid_t user) const noexcept { return std::ranges::count(of_users_, user) == 0; }
  [[nodiscard]] bool room_for(uid_t user) const noexcept {
    return has_none(user) || (of_users_.size() < kMostAside && std::ranges::count(of_users_, user) < kMostAsideOfOne);
  }
  void add(uid_t user) { of_users_.push_back(user); }
  void remove(uid_t user) noexcept {
    *std::ranges::find(of_users_, user) = of_users_.back();
    of_users_.pop_back();
  }

 private:
  static constexpr std::size_t kMostAtOnce = 1024;  ///< So many can be added without memory: more than there are as a rule.
  std::vector<uid_t> of_users_;
};

}  // namespace lrpc::shim
