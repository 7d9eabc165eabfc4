#include "accounts.h"

#include <cassert>

namespace lrpc::netpath {

Share::Share(std::initializer_list<Part> parts, std::mutex* together) noexcept : together_(together) {
  assert(parts.size() <= parts_.size());
  auto taken = parts_.begin();
  for (const Part& part : parts) {
    if (part.of == nullptr) continue;
    if (!part.of->take(part.amount, part.most)) {
      refused_by_ = part.of;
      give_locked();
      return;
    }
    *taken++ = part;
  }
}

Share& Share::operator=(Share&& other) noexcept {
  std::swap(parts_, other.parts_);
  std::swap(refused_by_, other.refused_by_);
  std::swap(together_, other.together_);
  return *this;
}

void Share::give() noexcept {
  if (parts_.front().of == nullptr) return;
  std::unique_lock<std::mutex> lock;
  if (together_ != nullptr) lock = std::unique_lock(*together_);
  give_locked();
}

void Share::give_locked() noexcept {
  for (Part& part : parts_)
    if (Holding* const of = std::exchange(part.of, nullptr); of != nullptr) of->give(part.amount);
}

namespace {

Share::Part of_user_locked(Account& user, const AllCalls& all, std::size_t hosts) noexcept {
  return {&user.calls, hosts, most_of_user(hosts, user.calls.amount(), all.holding.amount(), kMaxEStacks)};
}

}  // namespace

Share::Part CallAccounts::user_at_host_locked() const noexcept {
  Holding& calls = of_user_at_host->calls;
  return {&calls, 1, most_of_user(1, calls.amount(), of_host->calls.amount(), max_calls_to_host)};
}

Share CallAccounts::call() const noexcept {
  const std::lock_guard lock(all->mutex);
  return Share({of_user_locked(*of_user, *all, hosts),
                user_at_host_locked(),
                {&of_host->calls, 1, max_calls_to_host},
                {&all->holding, hosts, kMaxEStacks}},
               &all->mutex);
}

Share CallAccounts::question() const noexcept {
  const std::lock_guard lock(all->mutex);
  return Share({user_at_host_locked(), {&of_host->calls, 1, max_calls_to_host}}, &all->mutex);
}

Share Accounts::import(Account& of_user, std::size_t hosts) noexcept {
  const std::lock_guard lock(calls_.mutex);
  return Share({of_user_locked(of_user, calls_, hosts), {&calls_.holding, hosts, kMaxEStacks}}, &calls_.mutex);
}

Claim::~Claim() {
  const std::lock_guard lock(accounts.mutex_);
  paths.give();
  if (counted) accounts.claimed_.erase(binding);
}

Result<std::unique_ptr<Claim>> Accounts::claim(std::uint64_t binding, uid_t user, std::size_t paths) {
  if (options_.short_of_memory()) return Error{Errc::limit_reached, "this machine's network domain is short of memory"};
  std::unique_ptr<Claim> claim;  // destroyed after the lock, if there is no memory
  const std::lock_guard lock(mutex_);
  std::erase_if(accounts_, [](const auto& one) { return one.second.expired(); });
  auto of_user = account_locked(std::nullopt, user);
  Holding& has = of_user->paths;
  const std::size_t most = most_of_user(paths, has.amount(), paths_.amount(), options_.max_paths);
  Share share{{&paths_, paths, options_.max_paths}, {&has, paths, most}};
  if (share.refused_by() == &paths_)
    return Error{Errc::limit_reached, "this machine has as many remote bindings as it may have"};
  if (!share.granted())
    return Error{Errc::limit_reached, most < half(options_.max_paths)
                                          ? "this user has as many remote bindings as one may have beside others"
                                          : "this user has as many remote bindings as one user may have"};
  // A local binding ends with its path, so it has only one.
  if (claimed_.contains(binding))
    return Error{Errc::invalid_argument, "one remote binding for each binding to the network domain"};
  claim.reset(new Claim{*this, binding, user, std::move(of_user), std::move(share)});  // NOLINT: an aggregate
  claimed_.insert(binding);
  claim->counted = true;
  return claim;
}

CallAccounts Accounts::to_host(HostAddress host, const Claim& claim) {
  const std::lock_guard lock(mutex_);
  return {.of_user = claim.of_user,
          .of_user_at_host = account_locked(host, claim.user),
          .of_host = account_locked(host, std::nullopt),
          .max_calls_to_host = options_.max_calls_to_host,
          .all = &calls_};
}

CallAccounts Accounts::to_group(std::size_t members, const Claim& claim) {
  constexpr HostAddress kAnyGroup = 0;
  CallAccounts accounts = to_host(kAnyGroup, claim);
  accounts.hosts = members;
  return accounts;
}

std::shared_ptr<Account> Accounts::account_locked(std::optional<HostAddress> host, std::optional<uid_t> user) {
  std::weak_ptr<Account>& known = accounts_[{host, user}];
  auto account = known.lock();
  if (account == nullptr) known = account = std::make_shared<Account>();
  return account;
}

}  // namespace lrpc::netpath
