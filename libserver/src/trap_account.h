// Whose sealed clients a server serves: a thread each, until that thread has ended.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "account_share.h"
#include "estack_shares.h"

namespace lrpc::server {

/// How many threads serve sealed clients, and which users'. One that was abandoned counts, too, for as long as it is
/// there: a client that keeps its listener could make the server leave any number of them behind. Thread-safe; shared
/// with whatever it counts, which may outlive the server.
class TrapAccount {
 public:
  explicit TrapAccount(const ServerOptions& options) noexcept
      : most_(most_estacks(options)), most_of_user_(most_estacks_of_user(options)) {}

  /// One thread.
  using Share = AccountShare<TrapAccount, std::size_t>;

  /// limit_reached if the server, or this user, has as many as there may be.
  [[nodiscard]] static Result<Share> take(const std::shared_ptr<TrapAccount>& account, uid_t user) {
    const std::lock_guard lock(account->mutex_);
    if (account->all_ >= account->most_) {
      return Error{Errc::limit_reached, "as many sealed clients as the server has E-stacks"};
    }
    std::size_t& of_user = account->of_users_[user];
    if (of_user >= account->most_of_user_) {
      return Error{Errc::limit_reached, "as many sealed clients as the server lets one user have"};
    }
    ++of_user;
    ++account->all_;
    return Share(account, user, 1);
  }

 private:
  friend Share;
  void give(uid_t user, std::size_t threads) noexcept {
    const std::lock_guard lock(mutex_);
    all_ -= threads;
    const auto found = of_users_.find(user);
    found->second -= threads;
    if (found->second == 0) of_users_.erase(found);
  }

  const std::size_t most_;
  const std::size_t most_of_user_;
  std::mutex mutex_;
  std::size_t all_ = 0;
  std::map<uid_t, std::size_t> of_users_;
};

}  // namespace lrpc::server
