// What peers do not read, and connections that other users need.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <tuple>

#include "registry/core.h"

namespace lrpc::nameserver {
namespace {

using std::chrono::milliseconds;

/// Between two looks for messages that are not read. There are looks only while there are such messages.
constexpr milliseconds kLongestLook{1000};

/// Bytes that the peer has not read yet; as good as none if the kernel does not say.
std::uint64_t unread_bytes(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

/// What the loss of a connection costs its user, the least first: one that is not read, an idle one, one with imports,
/// a server. Of those that cost the same the youngest.
auto cost(const Connection& one) {
  int kind = 3;
  if (one.unread.any()) {
    kind = 0;
  } else if (one.exports.empty()) {
    kind = one.imports.empty() ? 1 : 2;
  }
  return std::tuple(kind, ~one.serial);
}

}  // namespace

void Core::refresh_in_flight(Connection& peer) {
  if (peer.fds_in_flight == 0 || unread_bytes(peer.socket.get()) > 0) return;
  accounts_.give(peer.peer.uid, Quota::descriptors_in_flight, peer.fds_in_flight);
  peer.fds_in_flight = 0;
}

/// The kernel counts descriptors in flight per user, over all of the nameserver's peers: no peer may use that up, nor
/// may all the peers of one user.
bool Core::room_in_flight(Connection& peer, std::size_t fds) {
  refresh_in_flight(peer);
  if (peer.fds_in_flight + fds > options_.limits.max_fds_in_flight_per_connection) return false;
  const auto room = [&] { return accounts_.room(peer.peer.uid, Quota::descriptors_in_flight, fds).has_value(); };
  if (room()) return true;
  for (const auto& [serial, one] : connections_) refresh_in_flight(*one);
  forget_what_was_read();
  return room();
}

/// A connection ends. What its peer has not read stays in the peer's socket, and in its user's account.
void Core::leave_unread(Connection& peer) {
  refresh_in_flight(peer);
  if (peer.fds_in_flight == 0) return;
  peer.socket.hang_up();  // what closing would tell the peer
  left_unread_.push_back({std::move(peer.socket), peer.open, peer.peer.uid, peer.fds_in_flight});
  look_for_unread_soon();
}

void Core::forget_what_was_read() {
  std::erase_if(left_unread_, [this](LeftUnread& one) {
    if (unread_bytes(one.socket.get()) > 0) return false;
    accounts_.give(one.user, Quota::descriptors_in_flight, one.fds);
    one.socket.reset();
    if (!one.open.expired()) {  // something is to be waited for: it counts again
      accounts_.take(one.user, Quota::connections);
      closing_.emplace_back(one.user, one.open);
    }
    return true;
  });
}

void Core::look_for_unread_soon() {
  if (unread_look_.serial != 0) return;
  const milliseconds patience = options_.unread_timeout;
  const milliseconds pause = std::min(kLongestLook, patience / 4);
  unread_look_ = loop_.after(std::max(pause, milliseconds(1)), [this] {
    unread_look_ = {};
    look_for_unread();
    reap();
  });
}

void Core::look_for_unread() {
  forget_what_was_read();
  bool any = !left_unread_.empty();
  const auto now = Unread::Clock::now();
  const auto patience = options_.unread_timeout == kNoLimit ? Unread::Clock::duration::max()
                                                            : Unread::Clock::duration(options_.unread_timeout);
  for (const auto& [serial, one] : connections_) {
    if (one->closing) continue;
    const bool stays = one->unread.stays(unread_bytes(one->socket.get()), now, patience);
    any = any || one->unread.any();
    if (!stays || options_.unread_timeout == kNoLimit) continue;
    log_about(one->peer, LogLevel::warning,
              "disconnected " + describe_peer(one->peer) + ": it does not read its messages");
    doom(*one);
  }
  if (any) look_for_unread_soon();
}

/// A newcomer whose user has less than its share gets a connection of the user who has the most. Libraries connect
/// again by themselves, so that little is lost; names may be, to whoever may export them and is faster.
bool Core::take_connection_back(const shim::Credentials& newcomer) {
  const std::optional<uid_t> user = accounts_.who_gives_way(newcomer.uid, Quota::connections);
  if (!user) return false;
  Connection* found = nullptr;
  for (const auto& [serial, one] : connections_) {
    if (one->peer.uid == *user && !one->closing && (found == nullptr || cost(*one) < cost(*found))) found = one.get();
  }
  if (found == nullptr) return false;
  log_about(found->peer, LogLevel::warning,
            "disconnected " + describe_peer(found->peer) + ": its user has more connections than its share");
  doom(*found);
  reap();
  return true;
}

}  // namespace lrpc::nameserver
