// How many bindings a server has, and which users'.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "account_share.h"
#include "lrpc/server/handle_table.h"
#include "lrpc/server/server.h"

namespace lrpc::server {

/// A binding that has ended counts, too, for as long as a procedure of it runs, which keeps its A-stacks mapped: a client
/// that lets go or dies again and again beside its long procedures could make the server hold any number of them. What
/// only waits to be unmapped does not count: as many bindings as there are E-stacks that have not woken yet, and the
/// hundred or so in the poller's hands while it is in another client's procedure. Thread-safe; shared with whatever it
/// counts, which may outlive the server.
class BindingAccount {
 public:
  struct Held {
    std::size_t bindings = 0;
    std::uint64_t region_bytes = 0;  ///< Of their primary regions.
  };
  /// One binding, as a rule.
  using Share = AccountShare<BindingAccount, Held>;

  /// limit_reached if the server has as many as it takes. On the thread that takes.
  [[nodiscard]] Status room(const ServerOptions& options) const {
    const std::lock_guard lock(mutex_);
    if (all_ < options.max_bindings) return {};
    return Error{Errc::limit_reached, "the server has " + std::to_string(all_) + " bindings, as many as it takes"};
  }
  /// limit_reached if the user would have more than one may.
  [[nodiscard]] Status room_for_user(uid_t user, std::uint64_t region_bytes, const ServerOptions& options) const {
    const std::lock_guard lock(mutex_);
    const auto found = of_users_.find(user);
    const Held has = found != of_users_.end() ? found->second.held : Held{};
    const std::string who = "user " + std::to_string(user) + " has ";
    if (has.bindings >= options.max_bindings_per_user) {
      return Error{Errc::limit_reached, who + std::to_string(has.bindings) +
                                            " bindings to the server, as many as it lets one user have "
                                            "(max_bindings_per_user)"};
    }
    const std::uint64_t most = options.max_region_bytes_per_user;
    if (has.region_bytes <= most && region_bytes <= most - has.region_bytes) return {};
    return Error{Errc::limit_reached, who + std::to_string(has.region_bytes) +
                                          " bytes of regions at the server and wants " + std::to_string(region_bytes) +
                                          " more, where it lets one user have " + std::to_string(most) +
                                          " (max_region_bytes_per_user)"};
  }
  /// Throws std::bad_alloc; then nothing was taken.
  [[nodiscard]] static Share take(const std::shared_ptr<BindingAccount>& account, uid_t user, Held held) {
    const std::lock_guard lock(account->mutex_);
    Held& of_user = account->of_users_[user].held;
    of_user.bindings += held.bindings;
    of_user.region_bytes += held.region_bytes;
    account->all_ += held.bindings;
    return Share(account, user, held);
  }
  /// What counts the handles of the user, who has a share. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<HandleCount> handles(uid_t user, const ServerOptions& options) {
    const std::lock_guard lock(mutex_);
    auto& count = of_users_.at(user).handles;
    if (count == nullptr) count = std::make_shared<HandleCount>(options.max_handles_per_user);
    return count;
  }

 private:
  friend Share;
  struct OfUser {
    Held held;
    std::shared_ptr<HandleCount> handles;
  };
  void give(uid_t user, Held held) noexcept {
    const std::lock_guard lock(mutex_);
    all_ -= held.bindings;
    const auto found = of_users_.find(user);
    found->second.held.bindings -= held.bindings;
    found->second.held.region_bytes -= held.region_bytes;
    if (found->second.held.bindings == 0) of_users_.erase(found);
  }

  mutable std::mutex mutex_;
  std::size_t all_ = 0;
  std::map<uid_t, OfUser> of_users_;
};

}  // namespace lrpc::server
