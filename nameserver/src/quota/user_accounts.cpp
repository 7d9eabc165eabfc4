#include "user_accounts.h"

#include <algorithm>
#include <string>

namespace lrpc::nameserver {
namespace {

std::size_t index(Quota which) noexcept { return static_cast<std::size_t>(which); }

}  // namespace

const QuotaName& name_of(Quota quota) noexcept { return kQuotaNames[index(quota)]; }

std::uint64_t limit_of(const UserQuota& quota, Quota which) noexcept { return quota.*name_of(which).limit; }

/// What each user is guaranteed, while no more than 64 have any: enough for one who exports a few names, or imports.
Supplies supplies_of(const Limits& limits) noexcept {
  Supplies all{};
  all[index(Quota::connections)] = lent_supply(limits.max_connections);
  all[index(Quota::names)] = kept_supply(limits.max_names, 16);
  all[index(Quota::declaration_bytes)] = kept_supply(limits.max_declaration_bytes, std::uint64_t{1} << 20);
  all[index(Quota::imports)] = kept_supply(limits.max_imports, 32);
  all[index(Quota::descriptors_in_flight)] = kept_supply(limits.max_fds_in_flight, 6);  // two messages of an import
  all[index(Quota::binds)] = kept_supply(limits.max_binds, 4);
  return all;  // region_bytes: sizes, not memory
}

UserAccounts::UserAccounts(QuotaSource quota_of, const Supplies& supplies, uid_t own_user)
    : quota_of_(std::move(quota_of)), own_user_(own_user) {
  for (std::size_t i = 0; i < kQuotas; ++i) shares_[i] = FairShares(supplies[i]);
}

Status UserAccounts::room(uid_t user, Quota which, std::uint64_t amount) const {
  if (Status within = within_quota(user, which, amount); !within) return within;
  const FairShares& shares = shares_[index(which)];
  const std::uint64_t has = taken(user, which);
  const std::uint64_t most = shares.most(privileged(user), has);
  if (has <= most && amount <= most - has) return {};
  return Error{Errc::limit_reached, "user " + std::to_string(user) + " has " + std::to_string(has) + " " +
                                        name_of(which).what + "; of " + std::to_string(shares.total()) +
                                        " in all its share is " + std::to_string(most) + " now (" + name_of(which).key +
                                        ")"};
}

std::optional<uid_t> UserAccounts::who_gives_way(uid_t user, Quota which) const {
  if (!within_quota(user, which, 1)) return std::nullopt;
  const std::uint64_t has = taken(user, which);
  const std::uint64_t share = shares_[index(which)].equal_share(has == 0);
  if (!privileged(user) && has >= share) return std::nullopt;
  std::optional<uid_t> found;
  std::uint64_t most = privileged(user) ? 0 : share;
  for (const auto& [other, account] : accounts_) {
    if (privileged(other) || account[index(which)] <= most) continue;
    most = account[index(which)];
    found = other;
  }
  return found;
}

Status UserAccounts::within_quota(uid_t user, Quota which, std::uint64_t amount) const {
  const std::uint64_t limit = limit_of(quota_of_(user), which);
  const std::uint64_t has = taken(user, which);
  if (has <= limit && amount <= limit - has) return {};
  const QuotaName& name = name_of(which);
  std::string text = "user " + std::to_string(user) + " has " + std::to_string(has) + " " + name.what;
  if (amount != 1) text.append(" and wants ").append(std::to_string(amount)).append(" more");
  text.append("; its quota is ").append(std::to_string(limit)).append(" (").append(name.key).append(")");
  return Error{Errc::limit_reached, std::move(text)};
}

void UserAccounts::take(uid_t user, Quota which, std::uint64_t amount) {
  if (amount == 0) return;
  std::uint64_t& has = accounts_[user][index(which)];
  shares_[index(which)].change(privileged(user), has, has + amount);
  has += amount;
}

void UserAccounts::give(uid_t user, Quota which, std::uint64_t amount) noexcept {
  const auto found = accounts_.find(user);
  if (found == accounts_.end()) return;
  std::uint64_t& has = found->second[index(which)];
  shares_[index(which)].change(privileged(user), has, has - amount);
  has -= amount;
  if (std::ranges::all_of(found->second, [](std::uint64_t taken) { return taken == 0; })) accounts_.erase(found);
}

std::uint64_t UserAccounts::taken(uid_t user, Quota which) const noexcept {
  const auto found = accounts_.find(user);
  return found != accounts_.end() ? found->second[index(which)] : 0;
}

}  // namespace lrpc::nameserver
