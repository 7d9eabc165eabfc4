#include "lrpc/detail/shim/binder/peer_socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>

#include "control_message.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"

namespace lrpc::shim {
namespace {

/// More messages than are queued between peers that read. A stranger may queue any number, and each costs two system
/// calls.
constexpr int kMostMessages = 16;

/// Reads all messages from a socketpair's end that is shut down and that nobody else reads from. False: a message with
/// descriptors is left in it, or too many messages are; or this is no socketpair's end.
bool read_out(int socket) noexcept {
  if (!is_socket_pair_end(socket)) return false;
  // Credentials tell an empty packet, which has them, from the end of file, which has none.
  constexpr int kOn = 1;
  (void)::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn);
  bool was_reset = false;
  for (int messages = 0;;) {
    std::byte byte{};
    const Peeked next = peek(socket, {&byte, 1}, MSG_DONTWAIT, true);
    if (next.size < 0) {
      if (errno == EINTR || (errno == ECONNRESET && !std::exchange(was_reset, true))) continue;
      return false;
    }
    if (next.laden) return false;
    if (!next.carries) return true;
    if (messages++ == kMostMessages) return false;
    (void)::recv(socket, &byte, 1, MSG_DONTWAIT);
  }
}

/// Whether the socket holds no descriptors, so that close(2) does not block.
bool holds_nothing(int socket, PeerSocket::Made made) noexcept {
  return made == PeerSocket::Made::refusing || (made == PeerSocket::Made::here && read_out(socket));
}

}  // namespace

PeerSocket::PeerSocket(UniqueFd fd, Made made, Stranger stranger) noexcept
    : fd_(std::move(fd)), made_(made), owner_(this_process()), stranger_(std::move(stranger)) {}

PeerSocket& PeerSocket::operator=(PeerSocket&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::move(other.fd_);
    made_ = other.made_;
    owner_ = other.owner_;
    stranger_ = std::move(other.stranger_);
  }
  return *this;
}

void PeerSocket::take_nothing() noexcept {
  if (fd_) (void)::shutdown(fd_.get(), SHUT_RD);
}

void PeerSocket::hang_up() noexcept {
  if (fd_ && owner_ == this_process()) (void)::shutdown(fd_.get(), SHUT_RDWR);
}

void PeerSocket::reset() noexcept {
  if (!fd_) return;
  const NoCancellation never;
  Stranger stranger = std::move(stranger_);
  const bool ours = owner_ == this_process();
  hang_up();  // from here on nothing is added
  if (!ours || holds_nothing(fd_.get(), made_)) return fd_.reset();
  close_aside(std::move(fd_), std::move(stranger));
}

ClosedAside& ClosedAside::operator=(ClosedAside&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::move(other.fd_);
    stranger_ = std::move(other.stranger_);
  }
  return *this;
}

bool refuse_descriptors(int socket) noexcept {
  constexpr int kPassRights = 83;  // SO_PASSRIGHTS
  constexpr int kNever = 0;
  return ::setsockopt(socket, SOL_SOCKET, kPassRights, &kNever, sizeof kNever) == 0;
}

UniqueFd PeerSocket::release() noexcept {
  stranger_ = {};
  return std::move(fd_);
}

}  // namespace lrpc::shim
