// How many of a server's E-stacks each user may have, and whose calls wait for one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "call/served_binding.h"
#include "server_options.h"

namespace lrpc::server {

/// Counts the E-stacks of each user, queues its waiting calls, and decides which user may have one more: a free one, or
/// one that another user has. Not thread-safe: under the pool's lock, except for what may be read without it.
///
/// An E-stack that executes a procedure cannot be taken back. So the last eighth of all E-stacks, or what the limit of
/// one user leaves if that is less, is for users that have few: beside others, a user gets only its fair share of it
/// (shim/most_of_one.h). A user that waits below its limit but may not have another is *refused*, although some may be
/// free. E-stacks that execute nothing then leave users that have too many, until the last eighth is free again.
///
/// Callers of other hosts are one user. These hosts share what that user may have, by the same rules: one host may have
/// all but an eighth of it, and of the last eighth, beside others, its fair share. A host that may not have another
/// does not keep the calls of other hosts and users waiting.
///
/// However many calls of a user wait: the work for each call is proportional at most to the number of users, for a call
/// of another host also to that of the hosts. And nothing but admit() needs memory for a holder that has been admitted.
class EStackShares {
 public:
  explicit EStackShares(const ServerOptions& options)
      : users_(false, most_estacks(options), most_estacks_of_user(options)),
        hosts_(true, users_.most_of_one,
               users_.last == 0 ? users_.most_of_one : users_.most_of_one - users_.most_of_one / 8) {}
  EStackShares(const EStackShares&) = delete;
  EStackShares& operator=(const EStackShares&) = delete;

  /// The holder has one binding more, or one less. admit() throws std::bad_alloc.
  void admit(Holder holder) {
    change(holder, [](Sharers&, One& one) { ++one.bindings; });
  }
  void dismiss(Holder holder) noexcept {
    change(holder, [](Sharers&, One& one) { --one.bindings; });
  }

  /// The holder has one more. Returns a flag that says whether calls of its user wait for an E-stack. The flag may be
  /// read without the lock until that E-stack is given back.
  const std::atomic<bool>& take(Holder holder);
  void give(Holder holder) {
    change(holder, [](Sharers& of, One& one) { --one.held, --of.in_use; });
  }
  [[nodiscard]] std::size_t held(Holder holder) const { return own(holder).held(holder); }

  // Calls that wait. An A-stack waits once, however often its caller rings.
  /// False: it waits already.
  bool add(WaitingCall call);
  /// False: it did not wait.
  bool remove(Holder holder, ServedAStack& astack);
  /// Takes the call to be served next: the first one of the user with the fewest E-stacks among those that wait below
  /// their limit; for other hosts, of the host with the fewest. Nothing: there is no such user, or it is refused; then
  /// all are.
  [[nodiscard]] std::optional<WaitingCall> next();
  /// The user whose call would be next, if it is refused.
  [[nodiscard]] std::optional<Holder> refused() const { return first_in_line(true); }
  /// The same among other hosts: the host whose call would be next, if it may not have another beside them.
  [[nodiscard]] std::optional<Holder> refused_host() const;
  /// The call could not be served: it goes back to the front of its queue.
  void put_back(WaitingCall call) { enter(std::move(call), true); }
  void clear();
  [[nodiscard]] std::size_t waiting() const noexcept { return users_.waiting + hosts_.waiting; }  ///< Calls of all.
  [[nodiscard]] bool any_waiting() const noexcept { return waiting() != 0; }
  [[nodiscard]] std::size_t waiting(Holder holder) const;
  /// Whether a user that is below its limit has calls that wait: if so, E-stacks ask is_wanted(). It does not depend on
  /// what other users have. May be read without the lock.
  [[nodiscard]] const std::atomic<bool>& eligible_wait() const noexcept { return eligible_wait_; }

  /// Whether the holder may have one more E-stack, if one is free.
  [[nodiscard]] bool may_have_another(Holder holder) const {
    return users_.may_grow(users_.held(holder)) && (!holder.remote() || hosts_.may_grow(hosts_.held(holder)));
  }
  /// The same, and it has less than its share.
  [[nodiscard]] bool has_few(Holder holder) const {
    const Sharers& among = own(holder);
    return may_have_another(holder) && users_.held(holder) < users_.share() && among.held(holder) < among.share();
  }
  /// The share of each user that has or wants any, when there are not enough.
  [[nodiscard]] std::size_t share() const { return users_.share(); }
  /// Whether an E-stack of `from` that executes nothing is to leave its A-stack for a call of `holder`. Between users:
  /// a user that has more than its share loses it to any other, and a user that has less may take it from any other.
  /// A user that is refused takes only from one that has more than the share and more than the refused user. From any
  /// other it would take in vain: that one would get it back first. Between other hosts the same rule decides.
  [[nodiscard]] bool may_take(Holder holder, Holder from) const {
    return holder == from || may_take_from_other(holder, from, 0, 0);
  }
  /// Whether `from` has more than its share: among hosts if both are hosts, else among users.
  [[nodiscard]] bool has_many(Holder holder, Holder from) const {
    const Sharers& between = shared_by(holder, from);
    return between.held(from) > between.share();
  }
  /// Call it before the first take_in_search() of a search. What an earlier search took counts again until it has left.
  void begin_search() noexcept {
    for (Sharers* const all : {&users_, &hosts_})
      for (auto& [key, one] : all->ones) one.leaving = 0;
  }
  /// may_take() for one of several E-stacks of a search. True: it is taken, and counts as if it had left. `got`: how
  /// many this search has taken from other holders; one more afterwards if this one is taken from another.
  [[nodiscard]] bool take_in_search(Holder holder, Holder from, std::size_t& got);
  /// Whether an E-stack of the holder that executes nothing is to leave for a call that waits.
  [[nodiscard]] bool is_wanted(Holder holder) const {
    return waiting(holder) != 0 || users_.is_wanted_by_other(holder) ||
           (holder.remote() && hosts_.is_wanted_by_other(holder));
  }

 private:
  struct One {
    std::size_t bindings = 0;
    std::size_t held = 0;
    std::size_t leaving = 0;         ///< Of these, those that the current search has taken for another.
    std::list<WaitingCall> waiting;  ///< In the order in which they came. Those of other hosts wait with their host.
    std::atomic<bool> waits{false};  ///< Calls wait, of this one or of its hosts.
    std::uint64_t first = 0;         ///< The number of the call that it would have served next; 0: none.
    bool shares = false;             ///< It has or wants any.
    bool eligible = false;           ///< It wants some and is below its limit.
  };
  using Ones = std::map<std::uint64_t, One>;

  /// All users, or all other hosts; and what they share.
  struct Sharers {
    Sharers(bool hosts, std::size_t all, std::size_t of_one)
        : of_hosts(hosts), most(all), most_of_one(of_one), last(std::min(all / 8, all - of_one)) {}
    [[nodiscard]] std::uint64_t key(Holder holder) const noexcept { return of_hosts ? holder.host : holder.user; }
    /// Whether one that has `has` E-stacks may have one more if one is free. It depends on what all have now, so the
    /// answer must not be stored. If one may not, none that has more may.
    [[nodiscard]] bool may_grow(std::size_t has) const;
    [[nodiscard]] bool may_take(std::size_t has, std::size_t from_has) const;
    [[nodiscard]] std::size_t share() const {
      return std::max<std::size_t>((most - last) / std::max<std::size_t>(sharers, 1), 1);
    }
    [[nodiscard]] std::size_t held(Holder holder) const;
    [[nodiscard]] bool is_wanted_by_other(Holder holder) const;
    /// Of those that wait below their limit the one with the fewest; if several have as few, the one that has waited
    /// longest.
    [[nodiscard]] Ones::const_iterator first_in_line() const;
    /// After each change to one. `first_call`: see One::first.
    void changed(Ones::iterator one, bool any_waiting, std::uint64_t first_call);

    const bool of_hosts;
    const std::size_t most;
    const std::size_t most_of_one;
    const std::size_t last;  ///< This many are for those that have few.
    Ones ones;
    std::size_t in_use = 0;    ///< What all have together.
    std::size_t waiting = 0;   ///< Calls of all.
    std::size_t sharers = 0;   ///< Those that have or want any.
    std::size_t eligible = 0;  ///< Those that wait below their limit.
  };

  /// The table in which the holder's calls wait.
  [[nodiscard]] Sharers& own(Holder holder) noexcept { return holder.remote() ? hosts_ : users_; }
  [[nodiscard]] const Sharers& own(Holder holder) const noexcept { return holder.remote() ? hosts_ : users_; }
  /// The table in which the two compete.
  [[nodiscard]] const Sharers& shared_by(Holder one, Holder other) const noexcept {
    return one.remote() && other.remote() ? hosts_ : users_;
  }
  /// The holder's entry in own(). It is made if there is none, like that of its user.
  [[nodiscard]] One& one_of(Holder holder);
  /// Changes the user's entry, and the host's if the holder is one.
  template <class Change>
  void change(Holder holder, Change&& change_one) {
    One& one = one_of(holder);
    if (holder.remote()) change_one(hosts_, one);
    change_one(users_, users_.ones.find(holder.user)->second);
    changed(holder);
  }
  /// After each change to a holder.
  void changed(Holder holder);
  void enter(WaitingCall call, bool at_front);
  /// Takes the call out of its queue; its place goes back to its A-stack.
  [[nodiscard]] WaitingCall take_out(Holder holder, ServedAStack& astack);
  /// The holder whose call is next, provided that its user is refused (`if_refused`) or is not refused (otherwise).
  [[nodiscard]] std::optional<Holder> first_in_line(bool if_refused) const;
  /// may_take() in a search that has taken `got` from others, and `leaving` from `from`.
  [[nodiscard]] bool may_take_from_other(Holder holder, Holder from, std::size_t got, std::size_t leaving) const;

  Sharers users_;
  Sharers hosts_;  ///< They share what their user may have.
  std::atomic<bool> eligible_wait_{false};
  std::uint64_t last_number_ = 0;
};

}  // namespace lrpc::server
