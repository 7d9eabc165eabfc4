// What each user has of the nameserver, over all its connections, against its quota and against its share of the whole.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

#include "fair_shares.h"
#include "lrpc/detail/nameserver/policy.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// What is counted. The names are those of UserQuota and of the policy file.
enum class Quota : std::uint8_t {
  connections,
  names,
  declaration_bytes,
  imports,
  region_bytes,
  descriptors_in_flight,
  binds,
};

/// One row for each quota: its name in a policy file, what it counts, and its member of UserQuota.
struct QuotaName {
  const char* key;
  const char* what;
  std::uint64_t UserQuota::*limit;
};
inline constexpr std::size_t kQuotas = 7;
/// In the order of Quota.
inline constexpr std::array<QuotaName, kQuotas> kQuotaNames{{
    {"connections", "connections to the nameserver", &UserQuota::connections},
    {"names", "names exported", &UserQuota::names},
    {"declaration_bytes", "bytes of declarations exported", &UserQuota::declaration_bytes},
    {"imports", "imports under way", &UserQuota::imports},
    {"region_bytes", "bytes of regions being bound", &UserQuota::region_bytes},
    {"descriptors_in_flight", "descriptors that it has not read yet", &UserQuota::descriptors_in_flight},
    {"binds", "imports that servers are being asked about", &UserQuota::binds},
}};
[[nodiscard]] const QuotaName& name_of(Quota quota) noexcept;
[[nodiscard]] std::uint64_t limit_of(const UserQuota& quota, Quota which) noexcept;

/// The supply of each quota for all users together.
using Supplies = std::array<Supply, kQuotas>;
[[nodiscard]] Supplies supplies_of(const Limits& limits) noexcept;

/// Not thread-safe: the event loop's.
class UserAccounts {
 public:
  using QuotaSource = std::function<UserQuota(uid_t)>;
  /// `quota_of` is called each time, so that a new policy counts at once. `own_user` has root's privileges here.
  UserAccounts(QuotaSource quota_of, const Supplies& supplies, uid_t own_user);

  /// Whether the user may have `amount` more; limit_reached, and which quota or share, if not. Takes nothing.
  [[nodiscard]] Status room(uid_t user, Quota which, std::uint64_t amount = 1) const;
  /// If there is no room for one more because others have it: the user that has the most, if that is more than its
  /// share and `user` has less than its own. For root and the nameserver's user: the one that has the most, as long as
  /// there is one; they themselves never give way. Work: the number of users.
  [[nodiscard]] std::optional<uid_t> who_gives_way(uid_t user, Quota which) const;
  void take(uid_t user, Quota which, std::uint64_t amount = 1);
  /// Gives back what was taken. A user who has nothing left is forgotten.
  void give(uid_t user, Quota which, std::uint64_t amount = 1) noexcept;
  [[nodiscard]] std::uint64_t taken(uid_t user, Quota which) const noexcept;
  /// Users who have anything.
  [[nodiscard]] std::size_t size() const noexcept { return accounts_.size(); }

 private:
  using Account = std::array<std::uint64_t, kQuotas>;  ///< What the user has taken.
  [[nodiscard]] Status within_quota(uid_t user, Quota which, std::uint64_t amount) const;
  [[nodiscard]] bool privileged(uid_t user) const noexcept { return user == 0 || user == own_user_; }

  QuotaSource quota_of_;
  uid_t own_user_;
  std::array<FairShares, kQuotas> shares_;
  std::unordered_map<uid_t, Account> accounts_;
};

}  // namespace lrpc::nameserver
