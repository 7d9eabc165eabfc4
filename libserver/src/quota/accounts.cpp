#include "accounts.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "lrpc/detail/shim/most_of_one.h"
#include "lrpc/detail/shim/no_limit.h"
#include "lrpc/detail/shim/system/daemon_descriptors.h"
#include "server_options.h"

namespace lrpc::server {
namespace {

// The limit of descriptors is read each time: the program may change it.
static_assert(RLIM_INFINITY == kNoLimit);
std::uint64_t most_descriptors_of_user(const ServerOptions& options) noexcept {
  if (options.max_descriptors_per_user) return *options.max_descriptors_per_user;
  const std::uint64_t all = shim::descriptor_limit();
  return all == kNoLimit ? kNoLimit : std::max<std::uint64_t>(all / 2, 1);
}

/// A sixteenth is for the program itself.
std::uint64_t descriptors_of_all(const ServerOptions& /*options*/) noexcept {
  const std::uint64_t all = shim::descriptor_limit();
  return all == kNoLimit ? kNoLimit : all - all / 16;
}

template <std::uint64_t ServerOptions::*kOption>
std::uint64_t value_of(const ServerOptions& options) noexcept {
  return options.*kOption;
}

struct Quota {
  std::uint64_t Holding::*what;
  std::string_view name;
  std::string_view option;  ///< The option that sets the limit.
  std::uint64_t (*most)(const ServerOptions& options) noexcept;
  std::uint64_t (*all)(const ServerOptions& options) noexcept = nullptr;  ///< Of all users; null: there is no limit.
};

using Options = ServerOptions;
constexpr Quota kAllBindings{&Holding::bindings, "bindings", "max_bindings", &value_of<&Options::max_bindings>};
constexpr Quota kAllSealed{&Holding::sealed_clients, "sealed clients", "max_estacks", &most_estacks};
constexpr std::array kOfAll{kAllBindings, kAllSealed};
constexpr std::array kOfUser{
    Quota{&Holding::bindings, "bindings to the server", "max_bindings_per_user",
          &value_of<&Options::max_bindings_per_user>, kAllBindings.most},
    Quota{&Holding::region_bytes, "bytes of regions at the server", "max_region_bytes_per_user",
          &value_of<&Options::max_region_bytes_per_user>},
    Quota{&Holding::grown_astacks, "secondary A-stacks", "max_grown_astacks_per_user",
          &value_of<&Options::max_grown_astacks_per_user>},
    Quota{&Holding::grown_bytes, "bytes of secondary regions", "max_grown_bytes_per_user",
          &value_of<&Options::max_grown_bytes_per_user>},
    Quota{&Holding::descriptors, "of the server's file descriptors", "max_descriptors_per_user",
          &most_descriptors_of_user, &descriptors_of_all},
    Quota{&Holding::sealed_clients, "sealed clients", "max_estacks_per_user", &most_estacks_of_user, kAllSealed.most},
};

std::uint64_t left_of(std::uint64_t most, std::uint64_t has) noexcept { return most - std::min(most, has); }

/// The most that a user that has `has` may have, while all have `in_use`: so no number of users shuts out the next one,
/// nor root and the server's own user, who have no shares (`unshared`). Other hosts together count as one user: the
/// network domain, which limits each of them, does not know this server's totals. A resource without a limit is not
/// shared.
std::uint64_t most_of(const Quota& quota, const Options& options, uid_t user, bool unshared, const Holding& has,
                      const Holding& in_use, std::uint64_t wanted) {
  const std::uint64_t most = quota.most(options);
  if (quota.all == nullptr || most == kNoLimit) return most;
  const std::uint64_t all = quota.all(options);
  if (unshared) return std::min(most, has.*quota.what + left_of(all, in_use.*quota.what));
  const std::uint64_t of_others = all - all / 16;
  if (user == kNobodyHere.uid) return of_others - of_others / 8;
  return shim::quota_beside_others(most, wanted, has.*quota.what, in_use.*quota.what, of_others);
}

Error no_room(const Quota& quota, const std::string& who, std::uint64_t has, std::uint64_t wanted, std::uint64_t most,
              std::string_view beside = "") {
  return {Errc::limit_reached, who + " has " + std::to_string(has) + " " + std::string(quota.name) + " and wants " +
                                   std::to_string(wanted) + " more, where there may be " + std::to_string(most) +
                                   std::string(beside) + " (" + std::string(quota.option) + ")"};
}

void add(Holding& has, const Holding& amount) noexcept {
  for (const Quota& quota : kOfUser) has.*quota.what += amount.*quota.what;
  has.left_bytes += amount.left_bytes;
}
void subtract(Holding& has, const Holding& amount) noexcept {
  for (const Quota& quota : kOfUser) has.*quota.what -= amount.*quota.what;
  has.left_bytes -= amount.left_bytes;
}

}  // namespace

Share& Share::operator=(Share&& other) noexcept {
  std::swap(accounts_, other.accounts_);
  std::swap(user_, other.user_);
  std::swap(amount_, other.amount_);
  return *this;
}

void Share::give() noexcept {
  if (const auto accounts = std::exchange(accounts_, nullptr); accounts != nullptr) accounts->give(user_, amount_);
}

void Share::leave(std::uint64_t most) noexcept {
  const Holding left{.left_bytes = amount_.region_bytes + amount_.grown_bytes};
  if (accounts_ != nullptr && accounts_->exchange(user_, amount_, left, most)) amount_ = left;
}

Status Accounts::room(const Holding& wanted) const {
  const Holding has = all();
  for (const Quota& quota : kOfAll) {
    const auto what = quota.what;
    const std::uint64_t most = quota.most(options_);
    if (wanted.*what > left_of(most, has.*what)) return no_room(quota, "the server", has.*what, wanted.*what, most);
  }
  return {};
}

Status Accounts::room(uid_t user, const Holding& wanted, bool promised) const {
  const std::lock_guard lock(mutex_);
  const Holding has = has_locked(user);
  const bool unshared = promised || privileged(user);
  for (const Quota& quota : kOfUser) {
    const auto what = quota.what;
    if (wanted.*what == 0) continue;  // some limits take a system call to read
    const std::uint64_t most = most_of(quota, options_, user, unshared, has, all_, wanted.*what);
    if (wanted.*what <= left_of(most, has.*what)) continue;
    return no_room(quota, "user " + std::to_string(user), has.*what, wanted.*what, most,
                   most < quota.most(options_) ? " beside what others have" : "");
  }
  return {};
}

Holding Accounts::left(uid_t user) const {
  const std::lock_guard lock(mutex_);
  const Holding has = has_locked(user);
  Holding left;
  for (const Quota& quota : kOfUser)
    left.*quota.what = left_of(most_of(quota, options_, user, privileged(user), has, all_, 1), has.*quota.what);
  return left;
}

Holding Accounts::has_locked(uid_t user) const {
  const auto found = users_.find(user);
  return found != users_.end() ? found->second.has : Holding{};
}

Share Accounts::take(uid_t user, const Holding& amount) {
  const std::lock_guard lock(mutex_);
  add(users_[user].has, amount);
  add(all_, amount);
  return Share(shared_from_this(), user, amount);
}

void Accounts::give(uid_t user, const Holding& amount) noexcept {
  const std::lock_guard lock(mutex_);
  subtract(all_, amount);
  const auto found = users_.find(user);
  subtract(found->second.has, amount);
  if (found->second.has == Holding{}) users_.erase(found);
}

bool Accounts::exchange(uid_t user, const Holding& amount, const Holding& left, std::uint64_t most) noexcept {
  const std::lock_guard lock(mutex_);
  Holding& has = users_.find(user)->second.has;
  if (has.left_bytes + left.left_bytes > most) return false;
  for (Holding* const of : {&has, &all_}) {
    subtract(*of, amount);
    add(*of, left);
  }
  return true;
}

std::shared_ptr<HandleCount> Accounts::handles(Holder holder) {
  const std::lock_guard lock(mutex_);
  User& user = users_.at(holder.user);
  if (user.handles == nullptr) user.handles = std::make_shared<HandleCount>(options_.max_handles_per_user);
  if (!holder.remote()) return user.handles;
  std::weak_ptr<HandleCount>& known = user.of_hosts[holder.host];
  if (auto count = known.lock()) return count;
  auto count = std::make_shared<HandleCount>(user.handles);
  known = count;
  std::erase_if(user.of_hosts, [](const auto& host) { return host.second.expired(); });
  return count;
}

void Accounts::settle_ended(uid_t user) noexcept {
  std::list<Unsettled> asked;
  {
    const std::lock_guard lock(unsettled_mutex_);
    for (auto next = unsettled_.begin(); next != unsettled_.end() && asked.size() < kAskedAgain;) {
      const auto one = next++;
      if (one->user == user) asked.splice(asked.end(), unsettled_, one);
    }
    // Then those of other users, which count in the totals.
    while (!unsettled_.empty() && asked.size() < kAskedAgain) asked.splice(asked.end(), unsettled_, unsettled_.begin());
  }
  // A secondary region stands before its binding, which can settle only after it.
  asked.remove_if([](const Unsettled& one) {
    const std::shared_ptr<void> ended = one.ended.lock();
    return ended == nullptr || one.settle(ended.get());
  });
  const std::lock_guard lock(unsettled_mutex_);
  unsettled_.splice(unsettled_.end(), asked);
}

}  // namespace lrpc::server
