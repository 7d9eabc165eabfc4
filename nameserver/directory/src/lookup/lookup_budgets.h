// How many requests to etcd each user's lookups may cause: a budget per user, which refills with time. Pure: time is
// passed in.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>

namespace lrpc::directory {

/// Not thread-safe. Users whose budget is full are forgotten.
class LookupBudgets {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Budget {
    int burst = 256;                           ///< Requests that a user may cause at once.
    std::chrono::milliseconds comes_back{20};  ///< One more after so long.
  };

  explicit LookupBudgets(Budget budget) noexcept : budget_(budget) {}

  /// False: `user` has used up its budget, and the request must not be sent. Work: the number of users that are
  /// remembered.
  [[nodiscard]] bool spend(uid_t user, Time now) {
    std::erase_if(whole_again_, [now](const auto& one) { return one.second <= now; });
    Time& whole = whole_again_.try_emplace(user, now).first->second;
    if (whole - now > budget_.comes_back * (budget_.burst - 1)) return false;
    whole += budget_.comes_back;
    return true;
  }
  [[nodiscard]] std::size_t size() const noexcept { return whole_again_.size(); }

 private:
  const Budget budget_;
  std::map<uid_t, Time> whole_again_;  ///< When each user's budget is full again.
};

}  // namespace lrpc::directory
