#include "lrpc/detail/shim/binder/bell.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "control_message.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "small_message.h"

namespace lrpc::shim {
namespace {

using Clock = std::chrono::steady_clock;

/// Waits for `events`; false: `until` has passed.
bool wait_for(int fd, short events, Clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return false;
    pollfd entry{fd, events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // the next attempt says what there is
  }
}

}  // namespace

void ring_bell(int bell) noexcept {
  const auto ring = static_cast<char>(BellMessage::ring);
  (void)send(bell, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status offer_on_bell(int bell, BellMessage message, int fd, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  const auto kind = static_cast<std::byte>(message);
  while (send_packet(bell, {&kind, 1}, {&fd, 1}, MSG_DONTWAIT) < 0) {
    if (errno == EAGAIN) {
      if (wait_for(bell, POLLOUT, until)) continue;
      return Error{Errc::timed_out, "the server's clerk does not look at the bell"};
    }
    if (errno == EPIPE || errno == ECONNRESET) return Error{Errc::peer_gone, "the server has let go of the binding"};
    return system_error("an offer on the bell", errno);
  }
  return {};
}

Result<std::optional<BellNews>> receive_bell(int bell, const Stranger& client) {
  auto received = receive_small(bell, "bell", PeerSocket::Made::here, client);
  if (!received) return received.error();
  if (!received->has_value()) return std::optional<BellNews>();
  SmallMessage& came = **received;
  BellNews news{.message = static_cast<BellMessage>(came.bytes[0])};
  const bool is_memory = came.fd && ::fcntl(came.fd.get(), F_GET_SEALS) >= 0;
  if (is_memory) close_aside(std::move(came.fd), client);  // it may have any size, and to free much takes long
  const bool is_listener = came.fd && !is_socket_pair_end(came.fd.get());
  const bool wants_listener = news.message == BellMessage::trap;
  const bool offers = news.message >= BellMessage::callback && news.message <= BellMessage::grow;
  const bool fits = !came.fds_refused && !is_memory && (!came.fd || (offers && is_listener == wants_listener));
  if (is_listener) {
    news.listener = std::move(came.fd);
  } else {
    news.offered = PeerSocket(std::move(came.fd), PeerSocket::Made::by_peer, client);
  }
  const bool known = offers || news.message == BellMessage::ring;
  if (came.size != 1 || !known || !fits) return Error{Errc::bad_message, "not a message of a bell"};
  return std::optional<BellNews>(std::move(news));
}

void accept_offer(int offered, BellMessage message) noexcept {
  const auto word = static_cast<char>(message);
  (void)send(offered, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status await_acceptance(int kept, BellMessage message, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  for (;;) {
    char word = 0;
    // Do not receive a message with descriptors: to close them could block.
    if (peek(kept, std::as_writable_bytes(std::span(&word, 1)), MSG_DONTWAIT, false).laden)
      return Error{Errc::peer_gone, "the server answers an offer with descriptors"};
    const ssize_t got = recv(kept, &word, 1, MSG_DONTWAIT);
    if (got == 1 && word == static_cast<char>(message)) return {};
    if (got >= 0 || (errno != EAGAIN && errno != EINTR))
      return Error{Errc::peer_gone, "the server has not taken the offer: it has one already, or is out of descriptors"};
    if (!wait_for(kept, POLLIN, until)) return Error{Errc::timed_out, "the server's clerk has not answered the offer"};
  }
}

}  // namespace lrpc::shim
