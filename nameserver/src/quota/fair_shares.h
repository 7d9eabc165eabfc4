// How much of one resource each user may have, out of what the nameserver has in all: a pure state machine; every
// change is passed in. Quotas say what a user may have while nobody else wants any; this says what is left of that when
// others come, so that some users together cannot shut the others out.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/no_limit.h"

namespace lrpc::nameserver {

/// What there is of a resource.
struct Supply {
  std::uint64_t total = kNoLimit;
  std::uint64_t reserved = 0;  ///< Only for the privileged: root and the nameserver's own user.
  /// Kept for users who have no more than `least`: newcomers / least users are guaranteed that much, whatever the
  /// others have. Both are 0 if a user's part can be taken back for another (Peers::take_connection_back).
  std::uint64_t newcomers = 0;
  std::uint64_t least = 0;
};

/// A resource whose parts come back only when the user gives them back.
Supply kept_supply(std::uint64_t total, std::uint64_t least) noexcept;
/// A resource whose parts can be taken back.
Supply lent_supply(std::uint64_t total) noexcept;

/// Constant work. Not thread-safe.
class FairShares {
 public:
  explicit FairShares(Supply supply = {}) noexcept : supply_(supply) {}

  /// Notes that a user has `after` now, and had `before`.
  void change(bool privileged, std::uint64_t before, std::uint64_t after) noexcept;
  /// What a user who has `has` may have now, at most. It may be less than `has`, which the user then keeps.
  [[nodiscard]] std::uint64_t most(bool privileged, std::uint64_t has) const noexcept;
  /// Equal parts of a resource that can be taken back, one for each user who has or wants (`comes`) some; 1 at least.
  [[nodiscard]] std::uint64_t equal_share(bool comes) const noexcept;
  [[nodiscard]] std::uint64_t total() const noexcept { return supply_.total; }

 private:
  [[nodiscard]] std::uint64_t for_others() const noexcept;
  [[nodiscard]] std::uint64_t above_least(std::uint64_t has) const noexcept;

  Supply supply_;
  std::uint64_t privileged_ = 0;   ///< What the privileged have.
  std::uint64_t others_ = 0;       ///< What the others have.
  std::uint64_t users_ = 0;        ///< Those others who have some.
  std::uint64_t above_ = 0;        ///< What they have beyond Supply::least, all together.
  std::uint64_t users_above_ = 0;  ///< How many of them.
};

}  // namespace lrpc::nameserver
