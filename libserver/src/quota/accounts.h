// What the users of a server hold of its resources, in one table.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "lrpc/detail/server/handle_table.h"
#include "lrpc/detail/server/server.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::server {

/// Who has or wants an E-stack or a handle: a user, or one of the other hosts. The other hosts together are one user
/// (kNobodyHere).
struct Holder {
  constexpr Holder(uid_t of_user = 0, std::uint64_t of_host = 0) noexcept : user(of_user), host(of_host) {}
  [[nodiscard]] constexpr bool remote() const noexcept { return user == shim::kNobodyHere.uid; }
  friend bool operator==(const Holder&, const Holder&) = default;

  uid_t user;
  std::uint64_t host;  ///< If remote(): which one.
};

/// An amount of each resource that is limited for each user (ServerOptions::max_..._per_user).
///
/// A binding that has ended still counts while a procedure of it runs, because that keeps its A-stacks mapped.
/// Otherwise a client that unbinds or dies again and again during long procedures could make the server hold any number
/// of bindings. The same holds for secondary regions, and for a callback stub that waits for a hook. A binding that
/// only waits to be unmapped does not count: there is at most one for each E-stack that has not woken yet, and the
/// hundred or so that a poller holds while it is in another client's procedure.
struct Holding {
  std::uint64_t bindings = 0;
  std::uint64_t region_bytes = 0;    ///< Of primary regions, and of those through which clients are called back.
  std::uint64_t grown_astacks = 0;   ///< In secondary regions.
  std::uint64_t grown_bytes = 0;     ///< Of secondary regions.
  std::uint64_t descriptors = 0;     ///< Until they are closed.
  std::uint64_t sealed_clients = 0;  ///< Each has a thread of the server, and counts until that has ended.
  std::uint64_t left_bytes = 0;      ///< Of large regions that have ended and are not unmapped yet (unmapper.h).
  friend bool operator==(const Holding&, const Holding&) = default;
};

class Accounts;

/// An amount that counts for a user until this is destroyed, which gives it back once. Do not destroy it under the
/// table's lock. It keeps the table, which may outlive the server. Move-only.
class Share {
 public:
  Share() noexcept = default;
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept;
  ~Share() { give(); }
  /// Gives the amount back now.
  void give() noexcept;
  /// Counts the amount's bytes as left_bytes instead, unless the user would then have more than `most` of these.
  void leave(std::uint64_t most) noexcept;

 private:
  friend Accounts;
  Share(std::shared_ptr<Accounts> accounts, uid_t user, const Holding& amount) noexcept
      : accounts_(std::move(accounts)), user_(user), amount_(amount) {}

  std::shared_ptr<Accounts> accounts_;
  uid_t user_ = 0;
  Holding amount_;
};

/// Thread-safe; each Share keeps it alive. Only one thread takes, so what there is room for can be taken then. E-stacks
/// are counted where it is decided which call gets the next one (estack_shares.h).
class Accounts : public std::enable_shared_from_this<Accounts> {
 public:
  /// `own_user`: it and root are never shut out by others.
  explicit Accounts(const ServerOptions& options, uid_t own_user = ::geteuid())
      : options_(options), own_user_(own_user) {}

  /// limit_reached, with the option's name, if the server would have more than it allows for all users together.
  [[nodiscard]] Status room(const Holding& wanted) const;
  /// The same for this user; callers of other hosts together are kNobodyHere. `promised`: there was room for this
  /// earlier, so what others have taken since does not matter; only the user's limit and the totals do.
  [[nodiscard]] Status room(uid_t user, const Holding& wanted, bool promised = false) const;
  /// What the user may still have.
  [[nodiscard]] Holding left(uid_t user) const;
  /// Takes without asking for room. Throws std::bad_alloc; then nothing was taken.
  [[nodiscard]] Share take(uid_t user, const Holding& amount);
  /// The count of the handles of a user, or of a host if that user is the other hosts. The user must hold something
  /// already. For a host without a count this takes time proportional to the number of hosts that have one. Throws
  /// std::bad_alloc.
  [[nodiscard]] std::shared_ptr<HandleCount> handles(Holder holder);
  /// Of all users.
  [[nodiscard]] Holding all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

  /// Settles what has ended, now or later. Any thread.
  template <class Ended>
  void settle(const std::shared_ptr<Ended>& ended) noexcept {
    if (!ended->settle()) settle_later(ended->user(), ended);
  }
  /// `ended`, which counts for `user`, could not settle() just now, because a call of it was claimed. settle_ended()
  /// tries again, unless its memory is unmapped first. If there is no memory to note this, it counts until it is
  /// unmapped. Any thread.
  template <class Ended>
  void settle_later(uid_t user, const std::shared_ptr<Ended>& ended) noexcept {
    try {
      std::list<Unsettled> one{
          {user, ended, [](void* again) noexcept { return static_cast<Ended*>(again)->settle(); }}};
      const std::lock_guard lock(unsettled_mutex_);
      unsettled_.splice(unsettled_.end(), one);
    } catch (const std::bad_alloc&) {
    }
  }
  /// Call it before `user` is told that there is no room. Tries to settle at most kAskedAgain of those that have ended,
  /// this user's first. Not under a lock of this library: it may close descriptors and unmap regions.
  void settle_ended(uid_t user) noexcept;
  static constexpr std::size_t kAskedAgain = 64;

 private:
  friend Share;
  struct Unsettled {
    uid_t user;
    std::weak_ptr<void> ended;
    bool (*settle)(void* ended) noexcept;
  };
  struct User {
    Holding has;
    std::shared_ptr<HandleCount> handles;
    std::map<std::uint64_t, std::weak_ptr<HandleCount>> of_hosts;  ///< Each lives as long as a binding of its host.
  };
  void give(uid_t user, const Holding& amount) noexcept;
  bool exchange(uid_t user, const Holding& amount, const Holding& left, std::uint64_t most) noexcept;
  [[nodiscard]] Holding has_locked(uid_t user) const;
  [[nodiscard]] bool privileged(uid_t user) const noexcept { return user == 0 || user == own_user_; }

  const ServerOptions options_;
  const uid_t own_user_;
  mutable std::mutex mutex_;
  Holding all_;
  std::map<uid_t, User> users_;
  std::mutex unsettled_mutex_;
  std::list<Unsettled> unsettled_;
};

}  // namespace lrpc::server
