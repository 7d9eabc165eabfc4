// Binder messages over AF_UNIX SOCK_SEQPACKET sockets: sending, receiving, and finding the nameserver.
#include <poll.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "binder_fields.h"
#include "control_message.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"
#include "lrpc/detail/shim/system/lack.h"
#include "take_in.h"

namespace lrpc::shim {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// How long to wait while too much of the same peer's is being closed. A thread that binds waits for that peer anyway.
constexpr milliseconds kIntakeTime{50};
/// A longer timeout is cut to this: the clock holds only some centuries.
constexpr milliseconds kLongestWait = std::chrono::hours(24 * 365);

/// Waits for `events` until `deadline` (none: for ever). False when the time is over.
Result<bool> wait_ready(int socket, short events, std::optional<Clock::time_point> deadline) {
  for (;;) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = std::chrono::ceil<milliseconds>(*deadline - Clock::now()).count();
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000'000));
    }
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, wait_ms);
    if (ready > 0) return true;
    if (ready == 0 && wait_ms < 1'000'000'000) return false;
    if (ready < 0 && errno != EINTR) return system_error("poll", errno);
  }
}

Error send_error(int err) {
  switch (err) {
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN: return {Errc::peer_gone, "the peer has closed its socket"};
    case EPERM: return {Errc::not_permitted, "the peer takes no descriptors"};
    case EAGAIN: return {Errc::limit_reached, "the peer does not read: its socket is full"};
    case EMSGSIZE:
      return system_error("sendmsg: the message does not fit the socket's buffer (net.core.wmem_default)", err);
    case ETOOMANYREFS: return system_error("sendmsg: too many descriptors of this user are in flight", err);
    default: return system_error("sendmsg", err);
  }
}

/// What recvmsg delivered, checked and decoded. `envelope` holds the descriptors: they close with it on failure.
Result<std::optional<BinderMessage>> open_packet(std::span<const std::byte> packet, int flags, BinderMessage envelope) {
  if (envelope.fds.size() > kMaxBinderFds)
    return bad_message("more than " + std::to_string(kMaxBinderFds) + " descriptors");
  if ((flags & MSG_TRUNC) != 0) return bad_message("too long");
  // The buffer has room for more than kMaxBinderFds, so descriptors are missing only if this process had no free
  // numbers.
  const bool fds_lost = (flags & MSG_CTRUNC) != 0;
  // Zero bytes are the end of file, but also an empty packet; only a packet has anything attached to it.
  if (packet.empty() && envelope.fds.empty() && !fds_lost)
    return Error{Errc::peer_gone, "the peer has closed its socket"};
  auto message = decode(packet);
  if (!message) return message.error();
  message->fds_lost = fds_lost;
  if (!fds_lost) message->fds = std::move(envelope.fds);
  message->sender = envelope.sender;
  return std::optional<BinderMessage>(std::move(*message));
}

/// Why a nameserver's socket could not be used, as a readable text.
std::string why_not(int err) {
  switch (err) {
    case ENOENT: return "no such socket";
    case ECONNREFUSED: return "nobody listens there, a nameserver that died left it behind";
    case ENOTSOCK: return "it is no socket";
    case EACCES:
    case EPERM: return "this user may not connect to it: see --mode in lrpcd(8)";
    case EPROTOTYPE: return "it is a socket of another kind, not a nameserver's";
    case ENAMETOOLONG: return "the path is too long for a socket";
    case EAGAIN: return "it does not take connections: its queue is full";
    default: return ::strerrordesc_np(err) != nullptr ? ::strerrordesc_np(err) : "errno " + std::to_string(err);
  }
}

/// Why there is no connection to `path`, after connect(2) has failed with `err`.
Error not_connected(const std::string& path, int err) {
  return is_lack(err) ? system_error("connect to " + path, err) : Error{Errc::no_nameserver, {}};
}

/// Connects to one path; on failure `err` is the errno. A nameserver that does not accept within 5 s (without `wait`:
/// at once) counts as absent.
Result<UniqueFd> connect_to(const std::string& path, bool wait, int& err) {
  sockaddr_un address{AF_UNIX, {}};
  if (path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos) {
    err = ENAMETOOLONG;
    return Errc::no_nameserver;
  }
  path.copy(address.sun_path, path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return system_error("socket", errno);
  const auto connected = [&] {
    const bool is = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    err = is ? 0 : errno;
    struct stat file {};
    // connect(2) reports a file that is no socket as a socket at which nobody listens.
    if (err == ECONNREFUSED && ::stat(path.c_str(), &file) == 0 && !S_ISSOCK(file.st_mode)) err = ENOTSOCK;
    return is;
  };
  const auto set_bound = [&](microseconds bound) {
    const timeval value{bound / 1s, (bound % 1s).count()};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &value, sizeof value);
  };
  const int blocking = 0;
  if (connected()) {
    ::ioctl(socket.get(), FIONBIO, &blocking);
    return socket;
  }
  if (err != EAGAIN || !wait) return not_connected(path, err);
  ::ioctl(socket.get(), FIONBIO, &blocking);
  const auto until = Clock::now() + 5s;
  do {  // signals do not extend the 5 s
    set_bound(std::max(std::chrono::ceil<microseconds>(until - Clock::now()), 1us));
    if (!connected()) continue;
    set_bound(0us);
    return socket;
  } while (err == EINTR);
  return not_connected(path, err);
}

std::string_view environment(const char* name) noexcept {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : std::string_view();
}

/// The value of a socket option; -1 on failure.
int option_of(int socket, int name) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/// The result of one attempt: a message, an error, or nothing; then `err` says why.
using Received = Result<std::optional<BinderMessage>>;

Received receive_now(int socket, Attachments attachments, int how, int& err) {
  // Peek at the length of the next message: most are a thousandth of the maximum. Attachments are not received by that.
  const bool none = attachments == Attachments::none;
  Peeked next = peek(socket, {}, MSG_TRUNC | how, false);
  // The attachment may be credentials alone: peek again, with room for those.
  const bool credentials = none && next.laden && option_of(socket, SO_PASSCRED) > 0;
  if (credentials) next = peek(socket, {}, MSG_TRUNC | how, true);
  err = errno;
  if (next.size < 0) return std::optional<BinderMessage>();
  // The peeked message is the one that we receive below: with Attachments::none nobody else reads from the socket.
  if (none && next.laden) return bad_message("it brings descriptors, where there are none to bring");
  const std::size_t room = std::clamp<std::size_t>(static_cast<std::size_t>(next.size), 1, kMaxBinderMessage);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(room);
  iovec part{buffer.get(), room};
  // Room for credentials and for one descriptor more than allowed, so that too many can be told from too few free
  // numbers. The kernel closes what does not fit and says so (MSG_CTRUNC), so a peer cannot fill this process's
  // descriptor table.
  constexpr std::size_t kControls = CMSG_SPACE((kMaxBinderFds + 1) * sizeof(int)) + CMSG_SPACE(sizeof(ucred));
  alignas(cmsghdr) std::array<char, kControls> control{};
  const std::size_t controls = !none ? control.size() : credentials ? CMSG_SPACE(sizeof(ucred)) : 0;
  msghdr header = header_of(part, std::span(control).first(controls));
  BinderMessage envelope;
  if (next.laden) envelope.fds.reserve(kMaxBinderFds + 1);  // before the descriptors are ours, so that none leaks
  const ssize_t received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | how);
  err = errno;
  if (received < 0) return std::optional<BinderMessage>();
  err = 0;
  for_each_descriptor(header, [&](int number, bool sent) {
    UniqueFd fd(number);  // closed if no peer sent it
    if (sent) envelope.fds.push_back(std::move(fd));
  });
  envelope.sender = credentials_in(header);
  return open_packet({buffer.get(), static_cast<std::size_t>(received)}, header.msg_flags, std::move(envelope));
}

Received take_in_now(int socket, const Stranger& stranger, int& err) {
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kMaxBinderMessage);
  Intake intake = take_in(socket, {buffer.get(), kMaxBinderMessage}, stranger, kIntakeTime);
  err = intake.err;
  if (err == ENOBUFS) {
    return Error{Errc::limit_reached,
                 "what this peer has sent cannot be received: too much from it is still being closed, or this process "
                 "can have no more threads (RLIMIT_NPROC, pids.max), descriptors or memory"};
  }
  if (intake.size < 0 && err != E2BIG) return std::optional<BinderMessage>();
  err = 0;
  if (intake.size < 0 || intake.fds_refused) return bad_message("it brings what nobody could want");
  const int flags = (intake.cut ? MSG_TRUNC : 0) | (intake.fds_lost ? MSG_CTRUNC : 0);
  BinderMessage envelope;
  envelope.sender = intake.sender;
  auto opened = open_packet({buffer.get(), static_cast<std::size_t>(intake.size)}, flags, std::move(envelope));
  if (opened && *opened) {
    (*opened)->fds = std::move(intake.fds);
  } else {
    close_strangers(std::move(intake.fds), stranger);
  }
  return opened;
}

}  // namespace

Status send_message(int socket, const BinderMessage& message, milliseconds timeout) {
  if (message.fds.size() > kMaxBinderFds)
    return Error{Errc::invalid_argument, "more than " + std::to_string(kMaxBinderFds) + " descriptors in one message"};
  auto bytes = encode(message);
  if (!bytes) return bytes.error();

  std::optional<Clock::time_point> deadline;
  if (!(timeout == kNoLimit)) deadline = Clock::now() + std::min<milliseconds>(timeout, kLongestWait);
  std::array<int, kMaxBinderFds> fds{};
  std::ranges::transform(message.fds, fds.begin(), &UniqueFd::get);
  const auto copied = std::span(fds).first(message.fds.size());
  for (;;) {
    if (send_packet(socket, *bytes, copied, deadline ? MSG_DONTWAIT : 0) >= 0) return {};
    if (errno != EAGAIN || timeout <= milliseconds(0)) return send_error(errno);
    auto ready = wait_ready(socket, POLLOUT, deadline);
    if (!ready) return ready.error();
    if (!*ready) return send_error(EAGAIN);
  }
}

Result<std::optional<BinderMessage>> receive_message(int socket, std::chrono::milliseconds timeout,
                                                     Attachments attachments, const Stranger& stranger) {
  const bool bounded = !(timeout == kNoLimit);
  const bool taken_in = attachments == Attachments::taken_in;
  std::optional<Clock::time_point> deadline;
  if (bounded) deadline = Clock::now() + std::min<milliseconds>(timeout, kLongestWait);
  bool was_reset = false;
  // A caller that waits for an answer waits before the first look, too: no answer is there yet, and a look costs time.
  const bool waits = bounded ? timeout > milliseconds(0) : taken_in;
  for (bool wait = bounded && waits;; wait = waits) {
    if (wait) {
      auto ready = wait_ready(socket, POLLIN, deadline);
      if (!ready) return ready.error();
      if (!*ready) return std::optional<BinderMessage>();
    }
    int err = 0;
    auto received = taken_in ? take_in_now(socket, stranger, err)
                             : receive_now(socket, attachments, bounded ? MSG_DONTWAIT : 0, err);
    if (!received || *received) return received;
    if (err == EINTR) continue;
    // A peer that closes with our messages unread resets the socket; its own last messages can be read after the error.
    if (err == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (err == ECONNRESET) return Error{Errc::peer_gone, "the peer has closed its socket"};
    if (err != EAGAIN) return system_error("recvmsg", err);
    if (!waits) return std::optional<BinderMessage>();
  }
}

Stranger stranger_at(int socket) {
  const auto peer = peer_credentials(socket);
  return peer ? Stranger{peer->uid} : Stranger{};
}

void close_strangers(std::vector<UniqueFd> fds, const Stranger& stranger) noexcept {
  for (UniqueFd& fd : fds)
    if (fd) close_aside(std::move(fd), stranger);
}

Result<std::pair<UniqueFd, UniqueFd>> make_socket_pair() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return system_error("socketpair", errno);
  return std::pair<UniqueFd, UniqueFd>(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

bool is_socket_pair_end(int fd) noexcept {
  return option_of(fd, SO_DOMAIN) == AF_UNIX && option_of(fd, SO_TYPE) == SOCK_SEQPACKET &&
         option_of(fd, SO_ACCEPTCONN) == 0;
}

bool is_seccomp_listener(int fd) noexcept {
  std::array<char, 48> link{};
  std::snprintf(link.data(), link.size(), "/proc/thread-self/fd/%d", fd);
  std::array<char, 64> target{};
  const ssize_t size = readlink(link.data(), target.data(), target.size());
  return size > 0 && std::string_view(target.data(), static_cast<std::size_t>(size)) == "anon_inode:seccomp notify";
}

bool knows_seccomp_listeners() noexcept {
  char target = 0;
  return readlink("/proc/thread-self", &target, 1) > 0;
}

std::vector<std::string> nameserver_sockets(std::string_view given) {
  if (!given.empty()) return {std::string(given)};
  if (const auto path = environment("LRPC_SOCKET"); !path.empty()) return {std::string(path)};
  std::vector<std::string> paths;
  if (const auto directory = environment("XDG_RUNTIME_DIR"); !directory.empty()) {
    paths.push_back(std::string(directory) + "/lrpc/lrpcd.sock");
  }
  paths.emplace_back(kSystemSocket);
  return paths;
}

Result<UniqueFd> connect_nameserver(std::string_view path, bool wait) {
  std::vector<std::string> sockets = nameserver_sockets(path);
  return connect_first_of(sockets, wait);
}

Result<UniqueFd> connect_first_of(std::vector<std::string>& sockets, bool wait) {
  std::string tried;
  bool absent = false;
  for (std::string& candidate : sockets) {
    int err = 0;
    auto socket = connect_to(candidate, wait, err);
    if (socket) {
      std::swap(sockets.front(), candidate);
      sockets.resize(1);
    }
    if (socket || socket.code() != Errc::no_nameserver) return socket;
    tried += (tried.empty() ? "" : ", ") + candidate + " (" + why_not(err) + ")";
    absent = absent || (err != EACCES && err != EPERM);
  }
  std::string advice;
  if (::getauxval(AT_SECURE) != 0) {  // secure_getenv(3): so it is for setuid programs and those with file capabilities
    advice =
        "; this program has privileges of its own, so it ignores LRPC_SOCKET and XDG_RUNTIME_DIR: give it the "
        "socket's path";
  } else if (absent) {
    advice = "; start one with `lrpcd`, or name the socket of one that runs (the option `nameserver`, or LRPC_SOCKET)";
  }
  return Error{Errc::no_nameserver, "no nameserver answers; tried " + tried + advice};
}

Result<std::string> settled_nameserver(std::string_view given) {
  std::vector<std::string> sockets = nameserver_sockets(given);
  if (sockets.size() > 1)
    if (const auto connected = connect_first_of(sockets); !connected) return connected.error();
  return std::move(sockets.front());
}

}  // namespace lrpc::shim
