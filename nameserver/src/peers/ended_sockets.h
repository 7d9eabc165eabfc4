// The sockets of connections that have ended, as long as they count against their users.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "loop/no_memory.h"
#include "lrpc/detail/shim/binder/peer_socket.h"
#include "peers/connection.h"
#include "quota/user_accounts.h"

namespace lrpc::nameserver {

/// Bytes that the peer has not read yet; 0 if the kernel does not say.
std::uint64_t unread_bytes(int socket) noexcept;

/// A connection counts against its user until its socket is closed, which may have to wait for the peer on another
/// thread, or until a newcomer needs its place. If its peer has not read all descriptors, the socket is kept, and the
/// descriptors count in place of the connection until they are read or the peer's end is closed, as Linux counts them.
/// Not thread-safe: on the event loop's thread.
class EndedSockets {
 public:
  explicit EndedSockets(UserAccounts& accounts) noexcept : accounts_(accounts) {}

  /// Reserves memory for the end of so many connections: the functions below need none.
  void make_room_for(std::size_t connections) {
    make_room(unread_, unread_.size() + connections);
    make_room(closing_, closing_.size() + unread_.size() + connections);
    make_room(uncounted_, kMostUncounted);
  }
  /// Called when a connection ends: takes over what it counts for and, if it has descriptors in flight, its socket;
  /// otherwise the socket is closed with the connection. fds_in_flight must be up to date.
  void take(Connection& peer);
  /// Gives back the places of connections whose sockets have been closed since.
  void give_back_closed();
  /// Stops counting one of the user's sockets that are being closed, because somebody else needs the place now. False:
  /// the user has none, or kMostUncounted of them are not closed yet.
  [[nodiscard]] bool count_one_less(uid_t user) noexcept;
  /// Gives back descriptors that have been read since.
  void give_back_read();
  [[nodiscard]] bool any_unread() const noexcept { return !unread_.empty(); }

 private:
  /// daemon_limits.cpp keeps descriptors for them.
  static constexpr std::size_t kMostUncounted = 64;
  struct LeftUnread {
    shim::PeerSocket socket;
    std::weak_ptr<const void> open;
    uid_t user;
    std::size_t fds;
  };

  UserAccounts& accounts_;
  std::vector<LeftUnread> unread_;
  std::vector<std::pair<uid_t, std::weak_ptr<const void>>> closing_;  ///< Not closed yet, and whose.
  std::vector<std::weak_ptr<const void>> uncounted_;                  ///< The same, but nobody's.
};

}  // namespace lrpc::nameserver
