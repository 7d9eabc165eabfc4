// How much of a shared resource one user may take, if nothing can be taken back from it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace lrpc::shim {

/// The most that a user may hold of `all`, if it holds `has` and all users together hold `in_use`: as much as it leaves
/// free for others. An eighth is set aside for users that hold less than `least`, which each may hold in any case if it
/// is free. So however many users come one after the other and take their most, the next one finds some.
[[nodiscard]] constexpr std::size_t most_of_one(std::size_t has, std::size_t in_use, std::size_t all,
                                                std::size_t least = 1) noexcept {
  const std::size_t others = in_use - std::min(in_use, has);
  return std::max((all - std::min(all, others + all / 8)) / 2, least);
}

/// Whether a user that holds `has` may take `more`, and so much is free.
[[nodiscard]] constexpr bool one_may_take(std::size_t more, std::size_t has, std::size_t in_use,
                                          std::size_t all) noexcept {
  return more <= all && in_use <= all - more && has + more <= most_of_one(has, in_use, all, more);
}

/// The most that a user with a quota may hold of `all`, if it holds `has`, wants `more`, and all users together hold
/// `in_use`. A user that is alone may hold its whole quota, except the last eighth of `all` (rounded down). Beside
/// others it may hold no more than its fair share of what is left.
[[nodiscard]] constexpr std::size_t quota_beside_others(std::size_t quota, std::size_t more, std::size_t has,
                                                        std::size_t in_use, std::size_t all) noexcept {
  if (has >= in_use) return std::min(quota, all - all / 8);
  return std::min({quota, has + (all - std::min(all, in_use)), most_of_one(has, in_use, all, more)});
}

}  // namespace lrpc::shim
