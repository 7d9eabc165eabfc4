#include "fair_shares.h"

#include <algorithm>

namespace lrpc::nameserver {
namespace {

/// One part in so many is reserved for the privileged: enough for an administrator and the system's own services.
constexpr std::uint64_t kReservedPart = 16;
/// Supply::least is guaranteed to so many users at a time, but at most half of the supply is kept for that.
constexpr std::uint64_t kNewcomers = 64;

std::uint64_t difference(std::uint64_t from, std::uint64_t what) noexcept { return from > what ? from - what : 0; }

}  // namespace

Supply kept_supply(std::uint64_t total, std::uint64_t least) noexcept {
  Supply supply = lent_supply(total);
  supply.newcomers = std::min(kNewcomers * least, total / 2);
  supply.least = least;
  return supply;
}

Supply lent_supply(std::uint64_t total) noexcept { return {.total = total, .reserved = total / kReservedPart}; }

std::uint64_t FairShares::above_least(std::uint64_t has) const noexcept { return difference(has, supply_.least); }

void FairShares::change(bool privileged, std::uint64_t before, std::uint64_t after) noexcept {
  if (privileged) {
    privileged_ = privileged_ - before + after;
    return;
  }
  others_ = others_ - before + after;
  above_ = above_ - above_least(before) + above_least(after);
  users_ = users_ - (before > 0 ? 1 : 0) + (after > 0 ? 1 : 0);
  users_above_ = users_above_ - (above_least(before) > 0 ? 1 : 0) + (above_least(after) > 0 ? 1 : 0);
}

std::uint64_t FairShares::for_others() const noexcept {
  return difference(supply_.total, std::max(supply_.reserved, privileged_));
}

std::uint64_t FairShares::most(bool privileged, std::uint64_t has) const noexcept {
  if (supply_.total == kNoLimit) return kNoLimit;
  if (privileged) return has + difference(supply_.total, privileged_ + others_);
  const std::uint64_t free = difference(for_others(), others_);
  if (supply_.least == 0) return has + free;
  // Divide what the others leave: one part for this user, one for each user that has more than the least already, and
  // one for the next. So however many users come one after the other, each leaves something to the next.
  const std::uint64_t left = difference(difference(for_others(), supply_.newcomers), above_ - above_least(has));
  const std::uint64_t parts = users_above_ + (above_least(has) > 0 ? 0 : 1) + 1;
  return std::min(has + free, supply_.least + left / parts);
}

std::uint64_t FairShares::equal_share(bool comes) const noexcept {
  const std::uint64_t users = users_ + (comes ? 1 : 0);
  return std::max<std::uint64_t>(1, for_others() / std::max<std::uint64_t>(1, users));
}

}  // namespace lrpc::nameserver
