#include "small_message.h"

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>

#include "control_message.h"
#include "take_in.h"

namespace lrpc::shim {

Result<std::optional<SmallMessage>> receive_small(int socket, const char* what, PeerSocket::Made made,
                                                  const Stranger& stranger) {
  SmallMessage received;
  const auto nothing = [&](int err) -> Result<std::optional<SmallMessage>> {
    if (err == EAGAIN || err == EINTR) return std::optional<SmallMessage>();
    return Error{Errc::peer_gone, std::string("the ") + what + " is broken"};
  };
  bool attached = made == PeerSocket::Made::by_peer;
  if (!attached) {
    const Peeked next = peek(socket, received.bytes, MSG_DONTWAIT, false);
    if (next.size < 0) return nothing(errno);
    attached = next.laden;
    received.size = static_cast<std::size_t>(next.size);
  }
  if (!attached) {
    (void)recv(socket, received.bytes.data(), received.bytes.size(), MSG_DONTWAIT);  // as peeked: nobody else reads
  } else {
    Intake intake = take_in(socket, received.bytes, stranger);
    if (intake.size < 0) return nothing(intake.err);
    received.size = static_cast<std::size_t>(intake.size);
    received.fds_lost = intake.fds_lost;
    received.fds_refused = intake.fds_refused || intake.fds.size() > 1;
    if (intake.fds.size() == 1) {
      received.fd = std::move(intake.fds.front());
    } else {
      close_strangers(std::move(intake.fds), stranger);
    }
  }
  if (received.size == 0 && !attached) return Error{Errc::peer_gone, std::string("the ") + what + " has hung up"};
  return std::optional<SmallMessage>(std::move(received));
}

}  // namespace lrpc::shim
