#include "listen_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/system/directory_of.h"
#include "lrpc/detail/shim/system/lack.h"

namespace lrpc::nameserver {
namespace {

/// How many connections the kernel queues until they are accepted; further clients wait to connect. While users fill
/// the queue, a newcomer waits for all connections before it; with a shorter queue it waits longer for a place in it.
/// Of 512, 1024 and 4096 this has the best worst-case import in `lrpc-bench hostile`.
constexpr int kLongestQueue = 1024;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path || path.find('\0') != std::string::npos)
    return Error{Errc::invalid_argument, "a socket path has 1 to " + std::to_string(sizeof address.sun_path - 1) +
                                             " bytes; this one has " + std::to_string(path.size()) + ": " + path};
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Makes the socket's directory if it is missing. Refuses one in which others could replace the socket.
Status make_directory(const std::string& path) {
  const std::string directory = shim::directory_of(path);
  const mode_t mode = path == shim::kSystemSocket ? 0755 : 0700;
  if (::mkdir(directory.c_str(), mode) == 0) {
    ::chmod(directory.c_str(), mode);  // whatever the umask was
  } else if (errno != EEXIST) {
    return system_error("cannot make the directory " + directory, errno);
  }
  const UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found {};
  if (!opened || ::fstat(opened.get(), &found) != 0)
    return system_error("cannot open the directory " + directory, errno);
  const bool others_write = (found.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (found.st_mode & S_ISVTX) == 0;
  if (others_write || (found.st_uid != ::geteuid() && found.st_uid != 0))
    return Error{Errc::not_permitted, directory + " is writable by other users, who could replace the socket in it"};
  return {};
}

/// Sleeps for 10 ms, or until `stop_fd` is readable. True: it is.
bool told_to_stop(int stop_fd) {
  pollfd stop{stop_fd, POLLIN, 0};
  return ::poll(&stop, 1, 10) > 0;
}

Error stopped(const std::string& path) { return {Errc::call_cancelled, "told to stop while it waited for " + path}; }

/// Keeps two nameservers that start at the same moment from replacing each other's socket. It locks a file that only
/// they can open: the directory itself can be locked by everybody who may read it.
class StartLock {
 public:
  static Result<StartLock> take(const std::string& path, int stop_fd) {
    StartLock lock(path + ".lock");
    for (int attempt = 0; attempt < 200; ++attempt) {
      auto locked = lock.try_once();
      if (!locked) return locked.error();
      if (*locked) return lock;
      if (told_to_stop(stop_fd)) return stopped(path);
    }
    return Error{Errc::timed_out, "another nameserver that starts on " + path + " holds the lock of " + lock.name_};
  }
  StartLock(StartLock&&) noexcept = default;
  StartLock& operator=(StartLock&&) = delete;
  /// Removes the file before the lock is released: a process that waits for the lock then sees that the file is
  /// another.
  ~StartLock() {
    if (file_) (void)::unlink(name_.c_str());
  }

 private:
  explicit StartLock(std::string name) noexcept : name_(std::move(name)) {}

  /// False: another process holds the lock.
  Result<bool> try_once() {
    UniqueFd file(::open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
    struct stat opened {};
    if (!file || ::fstat(file.get(), &opened) != 0) return system_error("cannot open " + name_, errno);
    if (!S_ISREG(opened.st_mode) || (opened.st_uid != ::geteuid() && opened.st_uid != 0))
      return Error{Errc::not_permitted, name_ + " is not a nameserver's own file: remove it"};
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK || errno == EINTR) return false;
      return system_error("flock of " + name_, errno);
    }
    struct stat there {};
    if (::lstat(name_.c_str(), &there) != 0 || there.st_dev != opened.st_dev || there.st_ino != opened.st_ino)
      return false;  // the lock file of a nameserver that has just started
    file_ = std::move(file);
    return true;
  }

  std::string name_;
  UniqueFd file_;
};

/// Connects to `address` without waiting: 0 or an errno.
int connect_to(const sockaddr_un& address, UniqueFd& socket) {
  socket = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// How long to wait until a killed nameserver is gone, or until a living one answers.
constexpr std::chrono::seconds kDyingTime{2};

/// Whether the nameserver at the other end is alive: true if it answers; false as soon as its process is dead or it
/// hangs up (the socket may outlive the process, because the kernel takes its io_uring down later). Unset if neither
/// happens by `until`, or before `stop_fd` is readable.
std::optional<bool> lives(int socket, Clock::time_point until, int stop_fd) {
  const auto pidfd = shim::peer_pidfd(socket);
  if (pidfd.code() == Errc::peer_gone) return false;
  if (!shim::send_message(socket, {1, shim::ListRequest{}, {}, {}}, kDoNotWait)) return false;
  for (;;) {
    pollfd fds[] = {{socket, POLLIN, 0}, {pidfd ? pidfd->get() : -1, POLLIN, 0}, {stop_fd, POLLIN, 0}};
    // Poll even when the time is over: the answer may have come while this process was kept from running.
    const auto left = std::max(std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()), 0ms);
    if (::poll(fds, 3, static_cast<int>(left.count())) <= 0) {
      if (left == 0ms) return std::nullopt;
      continue;
    }
    if (fds[0].revents != 0) {
      const auto answer = shim::receive_message(socket, std::chrono::milliseconds(0));
      if (answer && answer->has_value()) return true;
      if (answer.code() == Errc::peer_gone) return false;
    }
    if (fds[1].revents != 0) return false;
    if (fds[2].revents != 0) return std::nullopt;
  }
}

/// Removes what a dead nameserver left at `path`. Fails if anything alive, or anything but a socket, is there.
Status make_way(const std::string& path, const sockaddr_un& address, int stop_fd) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return errno == ENOENT ? Status() : system_error(path, errno);
  if (!S_ISSOCK(found.st_mode)) return Error{Errc::invalid_argument, path + " exists and is not a socket"};

  const auto until = Clock::now() + kDyingTime;
  int err = 0;
  for (;;) {
    UniqueFd socket;
    err = connect_to(address, socket);
    if (err != 0 && err != EAGAIN) break;
    const auto alive = err == 0 ? lives(socket.get(), until, stop_fd) : false;
    if (!alive && told_to_stop(stop_fd)) return stopped(path);
    if (alive.value_or(false) || Clock::now() >= until) {
      if (err == EAGAIN)
        return Error{Errc::name_taken, "a nameserver already listens on " + path + ", and is overloaded"};
      const auto peer = shim::peer_credentials(socket.get());
      const std::string who = peer && peer->pid > 0 ? " (process " + std::to_string(peer->pid) + ")" : "";
      return Error{Errc::name_taken,
                   "a nameserver already listens on " + path + who + (alive ? "" : ", and does not answer")};
    }
    if (told_to_stop(stop_fd)) return stopped(path);
  }
  if (err == EPROTOTYPE) return Error{Errc::name_taken, "another program listens on " + path};
  if (err == ENOENT) return {};
  if (err != ECONNREFUSED) return system_error("cannot tell whether somebody listens on " + path, err);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return system_error("cannot replace the dead socket " + path, errno);
  return {};
}

}  // namespace

Result<ListenSocket> ListenSocket::open(std::string path, mode_t mode, int stop_fd) {
  auto address = address_of(path);
  if (!address) return address.error();
  if (auto made = make_directory(path); !made) return made.error();
  const auto locked = StartLock::take(path, stop_fd);
  if (!locked) return locked.error();
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): what a variant owns is lost to the analyzer
  if (auto free = make_way(path, *address, stop_fd); !free) return free.error();

  ListenSocket made;
  made.socket_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.socket_) return system_error("socket", errno);
  if (::bind(made.fd(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return system_error("cannot bind " + path, errno);
  made.path_ = std::move(path);
  struct stat found {};
  // Nobody can connect before listen(), so nobody gets in before the mode is right.
  if (::lstat(made.path_.c_str(), &found) != 0) return system_error(made.path_, errno);
  made.device_ = found.st_dev;
  made.inode_ = found.st_ino;
  if (::chmod(made.path_.c_str(), mode) != 0) return system_error("chmod " + made.path_, errno);
  // No message to a nameserver carries descriptors. Accepted sockets inherit this setting; if the kernel cannot refuse
  // descriptors, they are never received.
  if (shim::refuse_descriptors(made.fd())) made.made_ = shim::PeerSocket::Made::refusing;
  if (::listen(made.fd(), kLongestQueue) != 0) return system_error("listen", errno);
  return made;
}

ListenSocket::~ListenSocket() {
  if (!socket_ || path_.empty()) return;
  struct stat found {};
  if (::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
  // Clients that were not accepted are now, and closed: they may have sent something that is slow to close.
  (void)::shutdown(fd(), SHUT_RDWR);  // nobody is added
  int err = 0;
  while (err == 0 || err == EINTR || err == ECONNABORTED) {
    UniqueFd accepted(::accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    err = accepted ? 0 : errno;
    const shim::Stranger who = shim::stranger_at(accepted.get());
    const shim::PeerSocket turned_away(std::move(accepted), made_, who);
  }
  if (shim::is_lack(err)) shim::close_aside(std::move(socket_), {});
}

}  // namespace lrpc::nameserver
