#include "bare_introduction.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "core/store.h"
#include "lrpc/detail/shim/binder/binder_protocol.h"
#include "lrpc/detail/shim/binder/packet.h"

namespace lrpc::bench {
namespace {

constexpr std::size_t kRegionBytes = 64 * 1024;

/// Waits for a packet of one byte and takes the descriptors that come with it.
bool hear(int socket, std::span<int> fds = {}) noexcept {
  std::byte byte{};
  return shim::receive_packet(socket, {&byte, 1}, fds) == 1;
}
bool say(int socket, std::span<const int> fds = {}) noexcept {
  const std::byte byte{'!'};
  return shim::send_packet(socket, {&byte, 1}, fds) == 1;
}

void* map_region(int fd) noexcept { return ::mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

/// Serves one client after another. Returns when something fails: the client then sees the end of the connection.
int be_introducer(int listener, int server) {
  for (;;) {
    const UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!client || !hear(client.get())) return 1;
    const UniqueFd region(::memfd_create("bare-region", MFD_CLOEXEC));
    auto bell = shim::make_socket_pair();
    if (!region || ::ftruncate(region.get(), kRegionBytes) != 0 || !bell) return 1;
    if (!say(server, std::array{region.get(), bell->second.get()}) || !hear(server)) return 1;
    if (!say(client.get(), std::array{region.get(), bell->first.get()})) return 1;
  }
}

int be_server(int introducer) {
  for (;;) {
    std::array<int, 2> fds{};
    if (!hear(introducer, fds)) return 1;
    const UniqueFd region(fds[0]);
    const UniqueFd bell(fds[1]);
    void* const mapped = map_region(region.get());
    if (mapped == MAP_FAILED || !say(introducer)) return 1;
    ::munmap(mapped, kRegionBytes);
  }
}

}  // namespace

BareIntroduction::Introduced::~Introduced() { ::munmap(region_, kRegionBytes); }

Result<std::unique_ptr<BareIntroduction>> BareIntroduction::start(const Seat& seat) {
  std::unique_ptr<BareIntroduction> bare(new BareIntroduction);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  auto& address = reinterpret_cast<sockaddr&>(bare->address_);
  address.sa_family = AF_UNIX;
  bare->address_size_ = sizeof bare->address_;
  // Binds an address that has only the family: the kernel chooses an abstract address (unix(7)).
  if (!listener || ::bind(listener.get(), &address, sizeof address.sa_family) != 0 ||
      ::getsockname(listener.get(), &address, &bare->address_size_) != 0 || ::listen(listener.get(), 8) != 0)
    return system_error("a socket for the bare introduction", errno);
  auto line = shim::make_socket_pair();
  if (!line) return line.error();
  const auto introduces = [&] { return be_introducer(listener.get(), line->first.get()); };
  const auto serves = [&] { return be_server(line->second.get()); };
  if (Status up = store(bare->introducer_, Child::spawn("bare-introducer", seat, introduces)); !up) return up.error();
  if (Status up = store(bare->server_, Child::spawn("bare-server", seat, serves)); !up) return up.error();
  return bare;
}

Result<std::unique_ptr<BareIntroduction::Introduced>> BareIntroduction::introduce() const {
  const UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address_), address_size_) != 0)
    return system_error("connecting to the bare introducer", errno);
  std::array<int, 2> fds{};
  if (!say(socket.get()) || !hear(socket.get(), fds))
    return Error{Errc::peer_gone, "the bare introducer does not answer"};
  const UniqueFd region(fds[0]);
  UniqueFd bell(fds[1]);
  void* const mapped = map_region(region.get());
  if (mapped == MAP_FAILED) return system_error("mapping the bare region", errno);
  return std::make_unique<Introduced>(mapped, std::move(bell));
}

}  // namespace lrpc::bench
