// Quotas of users and hosts in the network domain, so that none of them takes everything from the others. The terms are
// those of a server's accounts (libserver/src/quota).
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "lrpc/detail/shim/most_of_one.h"
#include "lrpc/netrpc/path/broker.h"

namespace lrpc::netpath {

/// E-stacks of the network domain: one for each call that waits for another host, and some for those that are refused.
inline constexpr std::size_t kMaxEStacks = 1024;
inline constexpr std::size_t kSpareEStacks = 64;

/// The most that one user may hold of what there is for all.
[[nodiscard]] constexpr std::size_t half(std::size_t all) noexcept { return all / 2 + all % 2; }
/// The same for a user who holds `has` and wants `more`, while all users hold `in_use`.
[[nodiscard]] constexpr std::size_t most_of_user(std::size_t more, std::size_t has, std::size_t in_use,
                                                 std::size_t all) noexcept {
  return shim::quota_beside_others(half(all), more, has, in_use, all);
}

/// How much of one thing a user or a host holds. Thread-safe.
class Holding {
 public:
  /// False, and nothing is taken, if that were more than `most`.
  [[nodiscard]] bool take(std::size_t amount, std::size_t most) noexcept {
    std::size_t has = has_.load();
    while (amount <= most && has <= most - amount)
      if (has_.compare_exchange_weak(has, has + amount)) return true;
    return false;
  }
  void give(std::size_t amount) noexcept { has_.fetch_sub(amount); }
  [[nodiscard]] std::size_t amount() const noexcept { return has_.load(); }

 private:
  std::atomic<std::size_t> has_{0};
};

/// Amounts that count in holdings as long as the share lives; the holdings outlive it. If one amount is refused, none
/// counts, so that refused requests take nothing from others. Move-only.
class Share {
 public:
  struct Part {
    Holding* of = nullptr;  ///< Null: no part.
    std::size_t amount = 0;
    std::size_t most = 0;  ///< Limit of the whole holding, with this part.
  };
  /// At most four parts. `together`: a mutex for limits that depend on what others hold; it outlives the share. The
  /// caller holds it while making the share; giving the share back locks it.
  Share(std::initializer_list<Part> parts = {}, std::mutex* together = nullptr) noexcept;
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept;
  ~Share() { give(); }
  [[nodiscard]] bool granted() const noexcept { return refused_by_ == nullptr; }
  /// Null: it is granted.
  [[nodiscard]] const Holding* refused_by() const noexcept { return refused_by_; }
  /// Ends it now.
  void give() noexcept;

 private:
  void give_locked() noexcept;

  std::array<Part, 4> parts_;
  const Holding* refused_by_ = nullptr;
  std::mutex* together_ = nullptr;
};

/// All users' calls and imports under way. Each takes a thread of the network domain; one to a group counts once for
/// each member.
struct AllCalls {
  std::mutex mutex;
  Holding holding;
};

/// What a user, a host, or a user at a host holds. All groups together count as one host.
struct Account {
  Holding paths;  ///< Of a user: remote bindings; one to a group counts once for each member.
  Holding calls;  ///< Under way. Of a user, one to a group counts once for each member.
};

/// The accounts in which a path's calls count.
struct CallAccounts {
  std::shared_ptr<Account> of_user;
  std::shared_ptr<Account> of_user_at_host;
  std::shared_ptr<Account> of_host;
  std::size_t max_calls_to_host = 0;
  AllCalls* all = nullptr;
  std::size_t hosts = 1;  ///< How many a call asks: each reply takes memory until the call ends.

  /// The share of one call: first in the user's accounts, then in everybody's.
  [[nodiscard]] Share call() const noexcept;
  /// The share of a question to the host by an import, which already counts for the user.
  [[nodiscard]] Share question() const noexcept;

 private:
  [[nodiscard]] Share::Part user_at_host_locked() const noexcept;
};

class Accounts;

/// A local binding to the network domain and its share of paths, from when its path is made until the path ends.
struct Claim {
  Accounts& accounts;
  const std::uint64_t binding;
  const uid_t user;
  const std::shared_ptr<Account> of_user;
  Share paths;
  bool counted = false;  ///< In Accounts::claimed_.
  ~Claim();
};

/// Thread-safe; outlives its claims and the shares of calls.
class Accounts {
 public:
  explicit Accounts(const BrokerOptions& options) noexcept : options_(options) {}

  /// `paths`: the number of hosts to which the path will lead. Errors: limit_reached, invalid_argument (`binding` has a
  /// claim).
  [[nodiscard]] Result<std::unique_ptr<Claim>> claim(std::uint64_t binding, uid_t user, std::size_t paths);
  /// The share of a user's import that asks this many hosts at a time.
  [[nodiscard]] Share import(Account& of_user, std::size_t hosts) noexcept;
  [[nodiscard]] CallAccounts to_host(HostAddress host, const Claim& claim);
  [[nodiscard]] CallAccounts to_group(std::size_t members, const Claim& claim);

 private:
  friend Claim;
  /// nullopt: of all hosts, of all users.
  [[nodiscard]] std::shared_ptr<Account> account_locked(std::optional<HostAddress> host, std::optional<uid_t> user);

  const BrokerOptions& options_;
  Holding paths_;  ///< Of all users.
  AllCalls calls_;
  std::mutex mutex_;
  std::set<std::uint64_t> claimed_;
  std::map<std::pair<std::optional<HostAddress>, std::optional<uid_t>>, std::weak_ptr<Account>> accounts_;
};

}  // namespace lrpc::netpath
