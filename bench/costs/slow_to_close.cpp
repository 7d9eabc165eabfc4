#include "slow_to_close.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "lrpc/detail/shim/binder/bell.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/peer_socket.h"

namespace lrpc::bench {
namespace {

constexpr std::size_t kSlow = 64;  ///< How many are slow at the same time.

/// The two ends of a TCP connection. close(2) of the first one waits.
std::pair<UniqueFd, UniqueFd> lingering_connection() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  constexpr int kSmall = 4096;
  (void)::setsockopt(listener.get(), SOL_SOCKET, SO_RCVBUF, &kSmall, sizeof kSmall);
  UniqueFd end(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  (void)::setsockopt(end.get(), SOL_SOCKET, SO_SNDBUF, &kSmall, sizeof kSmall);
  if (::bind(listener.get(), where, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), where, &size) != 0 || ::connect(end.get(), where, size) != 0)
    return {};
  UniqueFd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::array<char, 4096> bytes{};
  while (::send(end.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  constexpr linger kLong{1, 3600};
  (void)::setsockopt(end.get(), SOL_SOCKET, SO_LINGER, &kLong, sizeof kLong);
  return {std::move(end), std::move(other)};
}

// ---- the daemon ----

template <class Out>
void answer(int device, std::uint64_t unique, const Out& out) {
  std::array<std::byte, sizeof(fuse_out_header) + sizeof(Out)> reply{};
  const fuse_out_header header{static_cast<std::uint32_t>(reply.size()), 0, unique};
  std::memcpy(reply.data(), &header, sizeof header);
  std::memcpy(reply.data() + sizeof header, &out, sizeof out);
  (void)!::write(device, reply.data(), reply.size());
}
void refuse(int device, std::uint64_t unique, int error) {
  const fuse_out_header header{sizeof header, error, unique};
  (void)!::write(device, &header, sizeof header);
}

/// Answers all requests except FLUSH, until released. The end of this process ends all waits.
int answer_all_but_flush(int device, int released) {
  static std::array<std::byte, 65536> request;
  for (;;) {
    std::array<pollfd, 2> news{{{device, POLLIN, 0}, {released, POLLIN, 0}}};
    (void)::poll(news.data(), news.size(), -1);
    if (news[1].revents != 0) return 0;
    const ssize_t got = ::read(device, request.data(), request.size());
    if (got < 0 && errno == ENODEV) return 0;
    if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) continue;
    fuse_in_header in{};
    std::memcpy(&in, request.data(), sizeof in);
    switch (in.opcode) {
      case FUSE_INIT: {
        fuse_init_out out{};
        out.major = FUSE_KERNEL_VERSION;
        out.minor = 31;
        out.max_write = 4096;
        answer(device, in.unique, out);
        break;
      }
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = 3600;
        out.attr.ino = 1;
        out.attr.mode = S_IFREG | 0666;
        out.attr.nlink = 1;
        answer(device, in.unique, out);
        break;
      }
      case FUSE_OPEN: answer(device, in.unique, fuse_open_out{}); break;
      case FUSE_RELEASE: refuse(device, in.unique, 0); break;
      case FUSE_FLUSH:
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT: break;
      default: refuse(device, in.unique, -ENOSYS);
    }
  }
}

}  // namespace

Result<std::unique_ptr<StuckFile>> StuckFile::make(const Seat& seat) {
  const auto why_not = [](const char* what) {
    return Error{Errc::not_supported, std::string(what) + ": " + std::strerror(errno)};
  };
  const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!device) return why_not("/dev/fuse");
  std::unique_ptr<StuckFile> made(new StuckFile);
  StuckFile& file = *made;
  file.released_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!file.released_) return why_not("eventfd");
  std::string path = "/tmp/lrpc-bench-stuck-XXXXXX";
  if (!UniqueFd(::mkstemp(path.data()))) return why_not("/tmp");
  file.path_ = path;
  const std::string options =
      "fd=" + std::to_string(device.get()) + ",rootmode=100000,user_id=0,group_id=0,allow_other";
  if (::mount("lrpc-bench", path.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return why_not("no FUSE file system can be mounted");
  auto daemon =
      Child::spawn("bench-fuse", seat, [&] { return answer_all_but_flush(device.get(), file.released_.get()); });
  if (!daemon) return daemon.error();
  file.daemon_ = std::move(*daemon);
  return made;
}

StuckFile::~StuckFile() {
  if (path_.empty()) return;
  daemon_.kill();
  (void)::umount2(path_.c_str(), MNT_FORCE | MNT_DETACH);
  (void)::unlink(path_.c_str());
}

void StuckFile::release() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(released_.get(), &one, sizeof one);
}

SlowThings::SlowThings(Slow kind, const std::string& stuck_path) : kind_(kind) {
  if (kind == Slow::stuck) stuck_.reset(::open(stuck_path.c_str(), O_RDONLY | O_CLOEXEC));
}

void SlowThings::leave(const std::function<void(int fd)>& send) {
  if (kind_ == Slow::stuck) return send(stuck_.get());
  std::pair<UniqueFd, UniqueFd> connection = lingering_connection();
  UniqueFd slow = std::move(connection.first);
  if (!slow) return;
  UniqueFd queue;
  if (kind_ == Slow::laden) {
    auto ends = shim::make_socket_pair();
    if (!ends) return;
    (void)shim::offer_on_bell(ends->first.get(), shim::BellMessage::callback, slow.get(), std::chrono::milliseconds(0));
    shim::close_aside(std::exchange(slow, std::move(ends->second)), {});
    queue = std::move(ends->first);
  }
  send(slow.get());
  shim::close_aside(std::move(slow), {});  // this may be the last copy
  others_.emplace_back(std::move(connection.second), std::move(queue));
  if (others_.size() > kSlow) others_.pop_front();
}

}  // namespace lrpc::bench
