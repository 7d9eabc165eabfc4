#include "user_accounts.h"

#include <algorithm>
#include <array>
#include <string>

namespace lrpc::nameserver {
namespace {

constexpr std::array<QuotaName, kQuotas> kNames{{
    {"connections", "connections to the nameserver"},
    {"names", "names exported"},
    {"declaration_bytes", "bytes of declarations exported"},
    {"imports", "imports under way"},
    {"region_bytes", "bytes of regions being bound"},
    {"descriptors_in_flight", "descriptors that it has not read yet"},
}};

std::size_t index(Quota which) noexcept { return static_cast<std::size_t>(which); }

}  // namespace

const QuotaName& name_of(Quota quota) noexcept { return kNames[index(quota)]; }

std::uint64_t limit_of(const UserQuota& quota, Quota which) noexcept {
  switch (which) {
    case Quota::connections: return quota.connections;
    case Quota::names: return quota.names;
    case Quota::declaration_bytes: return quota.declaration_bytes;
    case Quota::imports: return quota.imports;
    case Quota::region_bytes: return quota.region_bytes;
    case Quota::descriptors_in_flight: return quota.descriptors_in_flight;
  }
  return 0;
}

void set_limit(UserQuota& quota, Quota which, std::uint64_t limit) noexcept {
  switch (which) {
    case Quota::connections: quota.connections = limit; break;
    case Quota::names: quota.names = limit; break;
    case Quota::declaration_bytes: quota.declaration_bytes = limit; break;
    case Quota::imports: quota.imports = limit; break;
    case Quota::region_bytes: quota.region_bytes = limit; break;
    case Quota::descriptors_in_flight: quota.descriptors_in_flight = limit; break;
  }
}

Status UserAccounts::room(uid_t user, Quota which, std::uint64_t amount) const {
  const std::uint64_t limit = limit_of(quota_of_(user), which);
  const std::uint64_t has = taken(user, which);
  if (limit == 0 || (has <= limit && amount <= limit - has)) return {};
  const QuotaName& name = name_of(which);
  std::string text = "user " + std::to_string(user) + " has " + std::to_string(has) + " " + name.what;
  if (amount != 1) text.append(" and wants ").append(std::to_string(amount)).append(" more");
  text.append("; its quota is ").append(std::to_string(limit)).append(" (").append(name.key).append(")");
  return Error{Errc::limit_reached, std::move(text)};
}

void UserAccounts::take(uid_t user, Quota which, std::uint64_t amount) {
  if (amount != 0) accounts_[user].taken[index(which)] += amount;
}

void UserAccounts::give(uid_t user, Quota which, std::uint64_t amount) noexcept {
  const auto found = accounts_.find(user);
  if (found == accounts_.end()) return;
  found->second.taken[index(which)] -= amount;
  if (std::ranges::all_of(found->second.taken, [](std::uint64_t taken) { return taken == 0; })) accounts_.erase(found);
}

std::uint64_t UserAccounts::taken(uid_t user, Quota which) const noexcept {
  const auto found = accounts_.find(user);
  return found != accounts_.end() ? found->second.taken[index(which)] : 0;
}

}  // namespace lrpc::nameserver
