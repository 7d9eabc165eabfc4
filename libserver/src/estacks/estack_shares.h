// Which user may have how many of a server's E-stacks, and whose calls wait for one.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>

#include "call/served_binding.h"
#include "server_options.h"

namespace lrpc::server {

/// How many each user has, and its calls that wait; which user may have one more: at once, or from which other user.
/// Not thread-safe: under the pool's lock, but for what is said to be read without it.
///
/// An E-stack that executes a procedure cannot be taken back. So the last eighth of all E-stacks, or what the limit of
/// one user leaves if that is less, is for users that have few: beside others, a user gets only its fair share of it
/// (shim/most_of_one.h). A user that waits below its limit but may not have another is *refused*, although some may be
/// free. E-stacks that execute nothing then leave users that have too many, until the last eighth is free again.
///
/// No user's waiting calls make anything slower: what is asked for each call takes time by the number of users at most.
/// And nothing but admit() needs memory for a user that has been admitted.
class EStackShares {
 public:
  explicit EStackShares(const ServerOptions& options)
      : most_(most_estacks(options)),
        most_of_user_(most_estacks_of_user(options)),
        last_(std::min(most_ / 8, most_ - most_of_user_)) {}
  EStackShares(const EStackShares&) = delete;
  EStackShares& operator=(const EStackShares&) = delete;

  /// The user has one binding more, or one less. admit() throws std::bad_alloc.
  void admit(uid_t user) { ++users_[user].bindings; }
  void dismiss(uid_t user) noexcept;

  /// The user has one more. Whether calls of its own wait for an E-stack: may be read without the lock until that one
  /// is given back.
  const std::atomic<bool>& take(uid_t user);
  void give(uid_t user);
  [[nodiscard]] std::size_t held(uid_t user) const;

  // Calls that wait. An A-stack waits once, however often its caller rings.
  /// False: it waits already.
  bool add(WaitingCall call);
  /// False: it did not wait.
  bool remove(uid_t user, ServedAStack& astack);
  /// The call to be served next: of the users that wait below their limit the one with the fewest, and of its calls
  /// the first. Nothing: there is no such user, or it is refused; then all are.
  [[nodiscard]] std::optional<WaitingCall> next();
  /// The user whose call would be next, if it is refused.
  [[nodiscard]] std::optional<uid_t> refused();
  /// It could not be served: it goes where it was.
  void put_back(WaitingCall call);
  void clear();
  [[nodiscard]] bool any_waiting() const noexcept { return waiting_ != 0; }
  [[nodiscard]] std::size_t waiting(uid_t user) const;
  /// Whether calls of a user wait that is below its limit: then E-stacks ask is_wanted(). It does not depend on what
  /// others have. Read without the lock.
  [[nodiscard]] const std::atomic<bool>& eligible_wait() const noexcept { return eligible_wait_; }

  /// Whether the user may have one more if there is one.
  [[nodiscard]] bool may_have_another(uid_t user) const { return may_grow(held(user)); }
  /// What each user that has or wants any may have when there are not enough.
  [[nodiscard]] std::size_t share() const {
    return std::max<std::size_t>((most_ - last_) / std::max<std::size_t>(sharers_, 1), 1);
  }
  /// Whether an E-stack of `holder` that executes nothing is to leave its A-stack for a call of `user`. Between users:
  /// a user that has more than its share loses it to any other, and a user that has less may take it from any other.
  /// A user that is refused takes only from one that has more than the share and more than the refused user. From any
  /// other it would take in vain: that one would get it back first.
  [[nodiscard]] bool may_take(uid_t user, uid_t holder) const {
    return user == holder || may_take_from_other(held(user), held(holder));
  }
  /// Before the first take_in_search() of a search. What an earlier search took counts again, until it has left.
  void begin_search() noexcept;
  /// may_take() for one of several E-stacks of a search; true: it is taken, and counts as if it had left. `got`: so
  /// many others it has taken from other users.
  [[nodiscard]] bool take_in_search(uid_t user, uid_t holder, std::size_t& got);
  /// Whether it is to leave for a call that waits.
  [[nodiscard]] bool is_wanted(uid_t holder) const;

 private:
  struct User {
    std::size_t bindings = 0;
    std::size_t held = 0;
    std::size_t leaving = 0;         ///< Of these, what the search that goes on has taken for another user.
    std::list<WaitingCall> waiting;  ///< In the order in which they came.
    std::atomic<bool> waits{false};  ///< There are some.
    bool shares = false;             ///< It has or wants any.
    bool eligible = false;           ///< It wants some and is below its limit.
  };
  using Users = std::map<uid_t, User>;

  /// Whether a user that has so many may have one more if there is one. It depends on what all users have now, so the
  /// answer is never kept. If a user may not, no user that has more may.
  [[nodiscard]] bool may_grow(std::size_t has) const;
  [[nodiscard]] bool may_take_from_other(std::size_t has, std::size_t holder_has) const;
  /// Of the users that wait below their limit the one with the fewest; of several the one that has waited longest.
  [[nodiscard]] Users::iterator first_in_line();
  /// After each change to a user.
  void changed(Users::iterator user);
  /// Back to its A-stack.
  [[nodiscard]] WaitingCall take_out(User& user, ServedAStack& astack);

  const std::size_t most_;
  const std::size_t most_of_user_;
  const std::size_t last_;  ///< This many are for users that have few.
  Users users_;
  std::size_t in_use_ = 0;    ///< That all users have.
  std::size_t waiting_ = 0;   ///< Of all users.
  std::size_t sharers_ = 0;   ///< Users that have or want any.
  std::size_t eligible_ = 0;  ///< Users that wait below their limit.
  std::atomic<bool> eligible_wait_{false};
  std::uint64_t last_number_ = 0;
};

}  // namespace lrpc::server
