// Newcomers: connections are accepted, counted and watched, or turned away.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "loop/no_memory.h"
#include "peers.h"

namespace lrpc::nameserver {

using std::chrono::milliseconds;

namespace {

/// How many connections are accepted in one turn, and more for as long as others' turns have taken since the last one:
/// so newcomers get at least half of the time, but not longer than kLongestAccepting.
constexpr int kAcceptedPerTurn = 64;
constexpr milliseconds kLongestAccepting{50};
/// The limit if threads must close them, because those threads need processor time, too.
constexpr int kClosedAsidePerTurn = 256;
constexpr milliseconds kAcceptPause{100};

/// What the loss of a connection costs its user. In ascending order: one with unread messages at the last check, an
/// idle one, one with imports, a server's. Of those that cost the same, the youngest first: `last` is the serial of the
/// youngest of all.
auto cost(const Connection& one, std::uint32_t last) {
  const int kind = one.unread.any() ? 0 : !one.exports.empty() ? 3 : one.imports.empty() ? 1 : 2;
  return std::tuple(kind, last - one.serial);  // its age, also when serials have begun again
}

}  // namespace

void Peers::accept_peers() {
  has_none_hung_up_.reset();
  const int most = listener_.made() == shim::PeerSocket::Made::refusing ? INT_MAX : kClosedAsidePerTurn;
  const auto begun = loop_.busy_time();
  const auto until = begun + std::min<EventLoop::Clock::duration>(begun - last_accepting_, kLongestAccepting);
  for (int i = 0; i < most && (i < kAcceptedPerTurn || loop_.busy_time() < until); ++i) {
    // A PeerSocket in any case: the client may have sent something by now that is slow to close.
    shim::PeerSocket socket(UniqueFd(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)),
                            listener_.made(), {});
    if (socket) {
      admit(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) {
      log(LogLevel::warning, system_error("cannot accept a connection, trying again soon: accept4", errno).text);
      pause_accepting();
    }
    return;
  }
}

/// Stops accepting for a while: a connection that cannot be accepted (no descriptors, no memory) would keep the loop
/// busy.
void Peers::pause_accepting() {
  loop_.cancel(accept_pause_);
  accept_pause_ = loop_.after(kAcceptPause, [this] {  // before anything else: without it nobody would ever be accepted
    if (!loop_.change(listen_watch_, {.readable = true})) pause_accepting();
  });
  if (!loop_.change(listen_watch_, {})) loop_.cancel(accept_pause_);
}

void Peers::admit(shim::PeerSocket socket) {
  auto who = shim::peer_credentials(socket.get());
  if (!who) return;
  socket = shim::PeerSocket(socket.release(), listener_.made(), {who->uid});
  ended_.give_back_closed();
  if (short_of_memory()) return;
  if (Status room = room_for_one_more(*who); !room) {
    log_about(*who, LogLevel::warning, "turned away " + describe_peer(*who) + ": " + room.error().message());
    const shim::Failed failed{Errc::limit_reached, room.error().message()};
    // Only a courtesy; the peer learns as much from the end of file.
    [[maybe_unused]] const auto told = shim::send_message(socket.get(), {0, failed, {}, {}}, kDoNotWait);
    return;
  }

  auto peer = std::make_unique<Connection>();
  do {
    peer->serial = ++last_serial_;
  } while (connections_.contains(peer->serial) || peer->serial == 0);
  peer->peer = Peer{*who, shim::peer_groups(socket.get())};
  if (auto& groups = peer->peer.groups; groups && groups->size() > kMostGroupsKept)
    groups = std::vector(groups->begin(), groups->begin() + kMostGroupsKept);
  auto hold = std::make_shared<const int>();
  peer->open = hold;
  peer->socket = shim::PeerSocket(socket.release(), listener_.made(), {who->uid, std::move(hold)});
  const std::uint32_t serial = peer->serial;
  const auto put = connections_.emplace(serial, std::move(peer)).first;
  try {
    if (!set_up(*put->second)) {
      connections_.erase(put);
      return;
    }
  } catch (const std::bad_alloc&) {
    loop_.forget(put->second->watch);
    connections_.erase(put);
    throw;
  }
  // A client has most often sent its first request by now: to receive it at once saves a turn of the loop.
  on_ready(serial, {.readable = true});
}

/// Watches and counts the connection. False: that fails. Also reserves the memory for its end, which must not allocate.
bool Peers::set_up(Connection& peer) {
  make_room(doomed_, connections_.size());
  ended_.make_room_for(connections_.size());
  auto watched = loop_.watch(
      peer.socket.get(), {.readable = true},
      [this, serial = peer.serial](Readiness readiness) { on_ready(serial, readiness); }, peer.peer.uid);
  if (!watched) {
    log_about(peer.peer, LogLevel::warning, watched.error().message());
    return false;
  }
  peer.watch = *watched;
  accounts_.take(peer.peer.uid, Quota::connections);
  return true;
}

Status Peers::room_for_one_more(const shim::Credentials& who) {
  Status room = accounts_.room(who.uid, Quota::connections);
  if (!room && end_hung_up(who.uid)) room = accounts_.room(who.uid, Quota::connections);
  if (!room && take_connection_back(who)) room = accounts_.room(who.uid, Quota::connections);
  return room;
}

/// Ends one of the user's connections whose hang-up has not been handled yet, so that a program that closes one can
/// open another at once. False: there is none, or a look in this turn has found none (users at their quota may come
/// often).
bool Peers::end_hung_up(uid_t user) {
  if (has_none_hung_up_ == user) return false;
  std::vector<Connection*> of_user;
  std::vector<pollfd> looks;
  for (const auto& [serial, one] : connections_) {
    if (one->peer.uid != user || one->closing) continue;
    of_user.push_back(one.get());
    looks.push_back({one->socket.get(), 0, 0});
  }
  (void)::poll(looks.data(), looks.size(), 0);
  const auto found = std::ranges::find_if(looks, [](const pollfd& look) { return (look.revents & POLLHUP) != 0; });
  if (found == looks.end()) {
    has_none_hung_up_ = user;
    return false;
  }
  doom(*of_user[static_cast<std::size_t>(found - looks.begin())]);
  reap();
  return true;
}

/// Takes a connection's place from the user that has the most, for a newcomer whose user has less than its share. Takes
/// that of a connection that is being closed already; if there is none, ends one. Libraries reconnect by themselves, so
/// that little is lost; but a server's names may go to another server that may export them and is faster.
bool Peers::take_connection_back(const shim::Credentials& newcomer) {
  const std::optional<uid_t> user = accounts_.who_gives_way(newcomer.uid, Quota::connections);
  if (!user) return false;
  if (ended_.count_one_less(*user)) return true;
  Connection* found = nullptr;
  std::tuple<int, std::uint32_t> least;
  for (const auto& [serial, one] : connections_) {
    if (one->peer.uid != *user || one->closing) continue;
    if (found != nullptr && cost(*one, last_serial_) >= least) continue;
    if (one->unread.any() && unread_bytes(one->socket.get()) == 0) {
      one->unread.has_been_read();
      if (found != nullptr && cost(*one, last_serial_) >= least) continue;
    }
    found = one.get();
    least = cost(*one, last_serial_);
  }
  if (found == nullptr) return false;
  disconnect(*found, "its user has more connections than its share");
  reap();
  (void)ended_.count_one_less(*user);  // its socket may be being closed
  return true;
}

}  // namespace lrpc::nameserver
