#include "udp_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>

#include "lrpc/detail/shim/system/daemon_descriptors.h"

namespace lrpc::bench {
namespace {

constexpr std::uint16_t kDiscard = 9;  // the others are connected to this port, but send nothing

/// A socket on a port that the kernel chooses, and that port.
Result<UniqueFd> bound(sockaddr_in& name) {
  UniqueFd made(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!made) return system_error("socket", errno);
  name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(made.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return system_error("bind", errno);
  socklen_t size = sizeof name;
  if (::getsockname(made.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0)
    return system_error("getsockname", errno);
  return made;
}

Status connect(const UniqueFd& from, const sockaddr_in& to) {
  if (::connect(from.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return system_error("connect", errno);
  const timeval second{1, 0};
  ::setsockopt(from.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  return {};
}

bool carry(const UniqueFd& from, const UniqueFd& to) noexcept {
  char byte = 1;
  return ::send(from.get(), &byte, 1, MSG_NOSIGNAL) == 1 && ::recv(to.get(), &byte, 1, 0) == 1;
}

}  // namespace

Result<UdpPorts> UdpPorts::open() {
  UdpPorts ports;
  sockaddr_in here{};
  sockaddr_in there{};
  auto client = bound(here);
  if (!client) return client.error();
  auto server = bound(there);
  if (!server) return server.error();
  if (Status done = connect(*client, there); !done) return done.error();
  if (Status done = connect(*server, here); !done) return done.error();
  ports.client_ = std::move(*client);
  ports.server_ = std::move(*server);
  return ports;
}

Status UdpPorts::have(std::size_t ports) {
  if (ports <= others_.size()) others_.resize(ports == 0 ? 0 : ports - 1);
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  nobody.sin_port = htons(kDiscard);
  while (others_.size() + 1 < ports) {
    sockaddr_in name{};
    auto other = bound(name);
    if (!other) return other.error();
    if (Status done = connect(*other, nobody); !done) return done;
    others_.push_back(std::move(*other));
  }
  return {};
}

bool UdpPorts::once() noexcept { return carry(client_, server_) && carry(server_, client_); }

std::size_t UdpPorts::most() noexcept {
  constexpr std::uint64_t kOthers = 128;
  const std::uint64_t limit = shim::descriptor_limit();
  return limit > kOthers ? limit - kOthers : 1;
}

}  // namespace lrpc::bench
