// What the users of a server have of it, in one table.
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

/// Who has or wants an E-stack or a handle: a user, or one of the other hosts, which together are one user
/// (kNobodyHere).
struct Holder {
  constexpr Holder(uid_t of_user = 0, std::uint64_t of_host = 0) noexcept : user(of_user), host(of_host) {}
  [[nodiscard]] constexpr bool remote() const noexcept { return user == shim::kNobodyHere.uid; }
  friend bool operator==(const Holder&, const Holder&) = default;

  uid_t user;
  std::uint64_t host;  ///< If remote(): which one.
};

/// An amount of each thing that a user may have only so much of (ServerOptions::max_..._per_user).
///
/// A binding that has ended counts, too, for as long as a procedure of it runs, which keeps its A-stacks mapped: a
/// client that lets go or dies again and again beside its long procedures could make the server hold any number of
/// them. The same holds for secondary regions, and for a callback stub that waits for a hook. What only waits to be
/// unmapped does not count: as many bindings as there are E-stacks that have not woken yet, and the hundred or so in a
/// poller's hands while it is in another client's procedure.
struct Holding {
  std::uint64_t bindings = 0;
  std::uint64_t region_bytes = 0;    ///< Of their primary regions, and of those through which clients are called back.
  std::uint64_t grown_astacks = 0;   ///< In secondary regions,
  std::uint64_t grown_bytes = 0;     ///< which take so many.
  std::uint64_t descriptors = 0;     ///< Until they are closed.
  std::uint64_t sealed_clients = 0;  ///< Each has a thread of the server's, until that has ended, abandoned or not.
  friend bool operator==(const Holding&, const Holding&) = default;
};

class Accounts;

/// An amount that counts for a user as long as this lives; its end gives it back, once, under no lock of ours. It keeps
/// the table, which may outlive the server. Move-only.
class Share {
 public:
  Share() noexcept = default;
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept;
  ~Share() { give(); }
  /// Ends it now.
  void give() noexcept;

 private:
  friend Accounts;
  Share(std::shared_ptr<Accounts> accounts, uid_t user, const Holding& amount) noexcept
      : accounts_(std::move(accounts)), user_(user), amount_(amount) {}

  std::shared_ptr<Accounts> accounts_;
  uid_t user_ = 0;
  Holding amount_;
};

/// Thread-safe; shared with whatever it counts. All takers are on one thread: what there is room for can be taken then.
/// E-stacks, which calls wait for in turn, are counted where that is decided (estack_shares.h).
class Accounts : public std::enable_shared_from_this<Accounts> {
 public:
  /// `own_user`: it and root are never shut out by others.
  explicit Accounts(const ServerOptions& options, uid_t own_user = ::geteuid())
      : options_(options), own_user_(own_user) {}

  /// limit_reached, and the option that says so, if the server would have more than it takes of all users.
  [[nodiscard]] Status room(const Holding& wanted) const;
  /// The same for this user, and for those of other hosts together (kNobodyHere). `promised`: it was asked for before,
  /// so that others' holdings of since then count no more; only what there is does.
  [[nodiscard]] Status room(uid_t user, const Holding& wanted, bool promised = false) const;
  /// What the user may still have.
  [[nodiscard]] Holding left(uid_t user) const;
  /// Asks nothing. Throws std::bad_alloc; then nothing was taken.
  [[nodiscard]] Share take(uid_t user, const Holding& amount);
  /// What counts the handles of a user who has something, or of a host if that user is the other hosts. For a host that
  /// has none yet it takes time by the number of those that have. Throws std::bad_alloc.
  [[nodiscard]] std::shared_ptr<HandleCount> handles(Holder holder);
  /// Of all users.
  [[nodiscard]] Holding all() const;

  /// `ended`, which counts for `user`, has just been asked to settle() and could not, because a call of it was claimed
  /// at that moment: it is asked again by settle_ended(), unless its memory is unmapped first. Without memory for this
  /// it counts until then. Any thread.
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
  /// Before `user` is told that there is no room. Asks so many again that have ended, at most: this user's first. Not
  /// under a lock of ours: it may close what they have, and unmap them.
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
    std::map<std::uint64_t, std::weak_ptr<HandleCount>> of_hosts;  ///< Each as long as a binding of the host has it.
  };
  void give(uid_t user, const Holding& amount) noexcept;
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
