#include "slow_to_close.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "core/store.h"
#include "fuse_without_flush.h"
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

/// Answers all requests except FLUSH, until released. The end of this process ends all waits.
int answer_until_released(int device, int released) {
  for (;;) {
    std::array<pollfd, 2> news{{{device, POLLIN, 0}, {released, POLLIN, 0}}};
    (void)::poll(news.data(), news.size(), -1);
    if (news[1].revents != 0 || !testing_lrpc::serve_without_flush(device)) return 0;
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
  if (!testing_lrpc::mount_without_flush(path, device.get())) return why_not("no FUSE file system can be mounted");
  const auto daemon = [&] { return answer_until_released(device.get(), file.released_.get()); };
  if (Status up = store(file.daemon_, Child::spawn("bench-fuse", seat, daemon)); !up) return up.error();
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
