// What somebody has of what is counted for each user.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>

namespace lrpc::server {

/// An amount that counts for a user as long as this lives; its end gives it back, once: `account->give(user, amount)`,
/// under no lock of ours. It keeps its account, which may outlive the server. Move-only.
template <class Account, class Amount>
class AccountShare {
 public:
  AccountShare() noexcept = default;
  AccountShare(std::shared_ptr<Account> account, uid_t user, Amount amount) noexcept
      : account_(std::move(account)), user_(user), amount_(amount) {}
  AccountShare(AccountShare&& other) noexcept
      : account_(std::exchange(other.account_, nullptr)), user_(other.user_), amount_(other.amount_) {}
  AccountShare& operator=(AccountShare&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(user_, other.user_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~AccountShare() { give(); }
  /// Ends it now.
  void give() noexcept {
    if (const auto account = std::exchange(account_, nullptr); account != nullptr) account->give(user_, amount_);
  }

 private:
  std::shared_ptr<Account> account_;
  uid_t user_ = 0;
  Amount amount_{};
};

}  // namespace lrpc::server
