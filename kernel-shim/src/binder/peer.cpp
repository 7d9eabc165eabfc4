// What the kernel knows of a peer, whether the interfaces of the two sides agree, and what a peer is told of an error.
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "control_message.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/identifier.h"
#include "lrpc/detail/shim/system/lack.h"
#include "lrpc/detail/shim/system/pidfd.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59  // Linux 4.13
#endif
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76  // Linux 6.5; Debian 12's headers are older
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // the same
#endif

namespace lrpc::shim {
namespace {

/// As which user and group the kernel reports those that it does not know (overflowuid, overflowgid).
constexpr uid_t kOverflowUser = 65534;

Error peer_gone() { return {Errc::peer_gone, "the peer's process is no more"}; }

/// The kernel also finds processes that have ended and not been reaped, and from Linux 6.16 on those that have.
Result<UniqueFd> if_it_lives(UniqueFd pidfd) {
  if (has_ended(pidfd.get())) return peer_gone();
  return pidfd;
}

}  // namespace

std::string version_of(const InterfaceId& interface) {
  return std::string(interface.name) + " " + std::to_string(interface.major) + "." + std::to_string(interface.minor);
}

Status compatible(const InterfaceId& wanted, const InterfaceId& exported) {
  const auto mismatch = [&](Errc code, const std::string& why) {
    return Error{code, "wanted is " + version_of(wanted) + ", exported is " + version_of(exported) + why};
  };
  if (wanted.name != exported.name)
    return mismatch(Errc::interface_mismatch, ": import the name of a server that exports " + std::string(wanted.name));
  if (wanted.major != exported.major)
    return mismatch(Errc::version_mismatch,
                    ": another major version is another interface; rebuild the client against the server's .lrpc file");
  if (exported.minor < wanted.minor)
    return mismatch(Errc::version_mismatch, ": the server is older than the client; update the server");
  if (wanted.hash == exported.hash) return {};
  // With stubgen's hashes always so: they cover the minor version, too.
  if (exported.minor > wanted.minor)
    return mismatch(Errc::version_mismatch,
                    ": the client is older than the server; rebuild the client against the server's .lrpc file");
  return mismatch(Errc::hash_mismatch, ", but their declarations differ (hash " + hexadecimal(wanted.hash) + " here, " +
                                           hexadecimal(exported.hash) +
                                           " there): generate both sides from the same .lrpc file");
}

Failed Failed::because_of(const Error& error, std::string_view here) {
  if (error.code != Errc::system_error) return {error.code, error.message()};
  return {code_for_peer(error.code), "in " + std::string(here) + " a system call failed: " + error.message()};
}

Result<int> ask_for_senders(int socket) {
  const int on = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return system_error("the descriptor is no end of a socket pair: SO_PASSCRED", errno);
  // For this look, the lock is taken under which senders decide (until Linux 6.16): what came before is in the queue.
  (void)::recv(socket, nullptr, 0, MSG_PEEK | MSG_DONTWAIT);
  int early = 0;
  return ::ioctl(socket, FIONREAD, &early) == 0 ? early : INT_MAX;
}

bool sender_known(const BinderMessage& message, bool early) noexcept {
  if (!message.sender) return false;
  const Credentials& sender = *message.sender;
  return !early || sender.pid != 0 || sender.uid != kOverflowUser || sender.gid != kOverflowUser;
}

Result<Credentials> peer_credentials(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return system_error("SO_PEERCRED", errno);
  return Credentials{peer.pid, peer.uid, peer.gid};
}

ClientCredentials ClientCredentials::of(const Credentials& who, const std::optional<std::vector<gid_t>>& told) {
  ClientCredentials client{who};
  if (!told) return client;
  client.groups_known = told->size() <= kMostGroups ? GroupsKnown::all : GroupsKnown::first;
  client.groups.assign(told->begin(), told->begin() + static_cast<std::ptrdiff_t>(std::min(told->size(), kMostGroups)));
  return client;
}

std::optional<std::vector<gid_t>> peer_groups(int socket) {
  std::vector<gid_t> groups(16);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const bool told = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0;
    if (!told && errno != ERANGE) break;
    groups.resize(size / sizeof(gid_t));  // the groups received, or the room that they take
    if (told) return groups;
  }
  return std::nullopt;
}

Result<UniqueFd> peer_pidfd(int socket) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return if_it_lives(UniqueFd(fd));
  switch (errno) {
    case ENOPROTOOPT: return peer_pidfd_by_pid(socket);
    case EINVAL:  // a peer that was already reaped, on kernels without a better errno for it
    case ENODATA:
    case ESRCH: return peer_gone();
    default: return system_error("SO_PEERPIDFD", errno);
  }
}

Result<UniqueFd> peer_pidfd_by_pid(int socket) {
  auto peer = peer_credentials(socket);
  if (!peer) return peer.error();
  if (peer->pid <= 0) return Error{Errc::not_supported, "the peer is in a pid namespace that this process cannot see"};
  auto pidfd = open_pidfd(peer->pid);
  if (!pidfd) return pidfd;
  // Only after the open: a peer that has not hung up by now had not when we opened, so the pid was still its own.
  if (hung_up(socket)) return peer_gone();
  return if_it_lives(*std::move(pidfd));
}

Result<UniqueFd> open_pidfd(pid_t pid) {
  UniqueFd pidfd = pidfd_of(pid);
  if (pidfd) return pidfd;
  if (errno == ESRCH) return peer_gone();
  return system_error("pidfd_open", errno);
}

Result<UniqueFd> pidfd_of_sender(const Credentials& sender) {
  if (sender.pid == 0) return UniqueFd();
  return open_pidfd(sender.pid);
}

NextSender next_sender(int socket) {
  const auto pass_pidfd = [socket](int on) {
    return ::setsockopt(socket, SOL_SOCKET, SO_PASSPIDFD, &on, sizeof on) == 0;
  };
  NextSender next;
  // Descriptors that come with the message would be received, too.
  if (const Peeked now = peek(socket, {}, MSG_DONTWAIT, true); now.size < 0 || now.laden || !pass_pidfd(1)) return next;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))> control{};
  iovec nothing{};
  msghdr header = header_of(nothing, control);
  const ssize_t size = ::recvmsg(socket, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  (void)pass_pidfd(0);
  if (size < 0) return next;
  if (const int error = pidfd_error_in(header); is_lack(error)) next.lacks = error;
  for_each_descriptor(header, [&](int number, bool sent) {
    UniqueFd fd(number);
    if (!sent) {
      next.pidfd = std::move(fd);
    } else {  // another holder of this end has received the message, and this is the next one
      close_aside(std::move(fd), stranger_at(socket));
    }
  });
  next.who = credentials_in(header);
  return next;
}

bool readable(int fd) noexcept {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

bool hung_up(int socket) noexcept {
  pollfd entry{socket, 0, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLERR)) != 0;
}

Nonce make_nonce() {
  Nonce nonce{};
  for (;;) {
    // Up to 256 bytes come whole or not at all (random(7)).
    if (::getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size())) return nonce;
    if (errno != EINTR) std::abort();  // no randomness: a guessable nonce would be worse than to end
  }
}

std::uint64_t make_identifier() {
  std::uint64_t identifier = 0;
  while (identifier == 0) {
    const Nonce random = make_nonce();
    std::memcpy(&identifier, random.data(), sizeof identifier);
  }
  return identifier;
}

std::string hexadecimal(std::uint64_t identifier) {
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = "0123456789abcdef"[identifier >> (4 * i) & 15];
  return text;
}

}  // namespace lrpc::shim
