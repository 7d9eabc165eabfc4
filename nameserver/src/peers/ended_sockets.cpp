#include "ended_sockets.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace lrpc::nameserver {

std::uint64_t unread_bytes(int socket) noexcept {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

void EndedSockets::take(Connection& peer) {
  const uid_t user = peer.peer.uid;
  if (peer.fds_in_flight == 0) {
    closing_.emplace_back(user, peer.open);
    return;
  }
  peer.socket.hang_up();  // what closing would tell the peer
  unread_.push_back({std::move(peer.socket), peer.open, user, peer.fds_in_flight});
  accounts_.give(user, Quota::connections);
}

void EndedSockets::give_back_closed() {
  std::erase_if(closing_, [this](const auto& one) {
    if (!one.second.expired()) return false;
    accounts_.give(one.first, Quota::connections);
    return true;
  });
}

bool EndedSockets::count_one_less(uid_t user) noexcept {
  const auto found = std::ranges::find(closing_, user, [](const auto& one) { return one.first; });
  std::erase_if(uncounted_, [](const auto& one) { return one.expired(); });
  if (found == closing_.end() || uncounted_.size() >= kMostUncounted) return false;
  uncounted_.push_back(std::move(found->second));
  closing_.erase(found);
  accounts_.give(user, Quota::connections);
  return true;
}

void EndedSockets::give_back_read() {
  std::erase_if(unread_, [this](LeftUnread& one) {
    if (unread_bytes(one.socket.get()) > 0) return false;
    one.socket.reset();
    if (!one.open.expired()) {  // the close must wait for something: the connection counts again
      accounts_.take(one.user, Quota::connections);
      closing_.emplace_back(one.user, one.open);
    }
    accounts_.give(one.user, Quota::descriptors_in_flight, one.fds);
    return true;
  });
}

}  // namespace lrpc::nameserver
