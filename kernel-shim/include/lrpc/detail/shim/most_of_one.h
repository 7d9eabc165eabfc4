// How much one of several may take of something that they have together and that cannot be taken back from it.
#pragma once

#include <algorithm>
#include <cstddef>

namespace lrpc::shim {

/// What one who has `has` of `all` may come to while all of them together have `in_use`: as much as it leaves free for
/// others. The last eighth goes to those that have less than `least`, which each may have in any case if there is any.
/// So however many come one after the other and take what they may, the next one finds some.
[[nodiscard]] constexpr std::size_t most_of_one(std::size_t has, std::size_t in_use, std::size_t all,
                                                std::size_t least = 1) noexcept {
  const std::size_t others = in_use - std::min(in_use, has);
  return std::max((all - std::min(all, others + all / 8)) / 2, least);
}

/// Whether one who has `has` may take `more` of what all have together, and there is so much.
[[nodiscard]] constexpr bool one_may_take(std::size_t more, std::size_t has, std::size_t in_use,
                                          std::size_t all) noexcept {
  return more <= all && in_use <= all - more && has + more <= most_of_one(has, in_use, all, more);
}

/// What one who has `has` and wants `more` may come to by a quota, of `all` of which all together have `in_use`. If
/// it is alone, its whole quota, but for an eighth of `all` (nothing, where that is less than one); beside others no
/// more than its fair share of what is left.
[[nodiscard]] constexpr std::size_t quota_beside_others(std::size_t quota, std::size_t more, std::size_t has,
                                                        std::size_t in_use, std::size_t all) noexcept {
  if (has >= in_use) return std::min(quota, all - all / 8);
  return std::min({quota, has + (all - std::min(all, in_use)), most_of_one(has, in_use, all, more)});
}

}  // namespace lrpc::shim
