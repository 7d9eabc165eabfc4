#include "lrpc/shim/bell.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace lrpc::shim {
namespace {

/// One more than we want, so that a second descriptor is seen and closed.
constexpr std::size_t kMostFds = 2;
union Control {
  char bytes[CMSG_SPACE(kMostFds * sizeof(int))];
  cmsghdr align;
};

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
  auto kind = static_cast<char>(message);
  iovec data{&kind, 1};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  while (sendmsg(bell, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      if (wait_for(bell, POLLOUT, until)) continue;
      return Error{Errc::timed_out, "the server's clerk does not look at the bell"};
    }
    if (errno == EPIPE || errno == ECONNRESET) return Error{Errc::peer_gone, "the server has let go of the binding"};
    return system_error("an offer on the bell", errno);
  }
  return {};
}

Result<std::optional<BellNews>> receive_bell(int bell) {
  std::array<char, 2> bytes{};  // one more than a message has, so that a longer one is seen
  iovec data{bytes.data(), bytes.size()};
  Control control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof control.bytes;
  const ssize_t got = recvmsg(bell, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return std::optional<BellNews>();
    return Error{Errc::peer_gone, "the bell is broken"};
  }
  std::array<UniqueFd, kMostFds> fds;
  std::size_t count = 0;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN((at + 1) * sizeof(int)) <= one->cmsg_len && count < kMostFds; ++at) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + at * sizeof fd, sizeof fd);
      fds[count++] = UniqueFd(fd);
    }
  }
  if (got == 0 && count == 0) return Error{Errc::peer_gone, "the bell has hung up"};
  const auto message = static_cast<BellMessage>(bytes[0]);
  const bool known = message >= BellMessage::ring && message <= BellMessage::grow;
  const bool fds_fit = message == BellMessage::ring ? count == 0 : count <= 1;
  if (got != 1 || !known || !fds_fit) return Error{Errc::bad_message, "not a message of a bell"};
  return std::optional<BellNews>(BellNews{message, std::move(fds[0])});
}

void accept_offer(int offered, BellMessage message) noexcept {
  const auto word = static_cast<char>(message);
  (void)send(offered, &word, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

Status await_acceptance(int kept, BellMessage message, std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  for (;;) {
    char word = 0;
    const ssize_t got = recv(kept, &word, 1, MSG_DONTWAIT);
    if (got == 1 && word == static_cast<char>(message)) return {};
    if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
      return Error{Errc::peer_gone, "the server has not taken the offer: it has one already, or is out of descriptors"};
    }
    if (!wait_for(kept, POLLIN, until)) return Error{Errc::timed_out, "the server's clerk has not answered the offer"};
  }
}

}  // namespace lrpc::shim
