// What each user has of the nameserver, over all its connections, against its quota.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "lrpc/nameserver/policy.h"

namespace lrpc::nameserver {

/// What is counted. The names are those of UserQuota and of the policy file.
enum class Quota : std::uint8_t {
  connections,
  names,
  declaration_bytes,
  imports,
  region_bytes,
  descriptors_in_flight,
};
inline constexpr std::size_t kQuotas = 6;

/// One row for each quota: its name in a policy file, what it is of, and where UserQuota has it.
struct QuotaName {
  const char* key;
  const char* what;
};
[[nodiscard]] const QuotaName& name_of(Quota quota) noexcept;
/// 0: no limit.
[[nodiscard]] std::uint64_t limit_of(const UserQuota& quota, Quota which) noexcept;
void set_limit(UserQuota& quota, Quota which, std::uint64_t limit) noexcept;

/// Not thread-safe: the event loop's.
class UserAccounts {
 public:
  using QuotaSource = std::function<UserQuota(uid_t)>;
  /// `quota_of` is asked each time, so that a new policy counts at once.
  explicit UserAccounts(QuotaSource quota_of) : quota_of_(std::move(quota_of)) {}

  /// Whether the user may have `amount` more; limit_reached, and which quota, if not. Takes nothing.
  [[nodiscard]] Status room(uid_t user, Quota which, std::uint64_t amount = 1) const;
  void take(uid_t user, Quota which, std::uint64_t amount = 1);
  /// Gives back what was taken. A user who has nothing left is forgotten.
  void give(uid_t user, Quota which, std::uint64_t amount = 1) noexcept;
  [[nodiscard]] std::uint64_t taken(uid_t user, Quota which) const noexcept;
  /// Users who have anything.
  [[nodiscard]] std::size_t size() const noexcept { return accounts_.size(); }

 private:
  struct Account {
    std::uint64_t taken[kQuotas] = {};
  };
  QuotaSource quota_of_;
  std::unordered_map<uid_t, Account> accounts_;
};

}  // namespace lrpc::nameserver
