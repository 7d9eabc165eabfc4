#include "hostile_users.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <variant>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "lrpc/shim/binder/bell.h"
#include "lrpc/shim/binder/peer_socket.h"

namespace lrpc::bench {
namespace {

constexpr std::size_t kLingering = 64;  ///< At a time.

/// The two ends of a TCP connection. The first one waits when it is closed: it lingers, with more to send than the
/// second one takes.
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

}  // namespace

void HostileUsers::live() {
  for (;;) {
    for (uid_t i = 0; i < connections_.size(); ++i) {
      if (::seteuid(first_ + i) != 0) ::_exit(1);
      attack(connections_[i]);
      if (::seteuid(0) != 0) ::_exit(1);
    }
  }
}

void HostileUsers::attack(std::vector<UniqueFd>& connections) {
  switch (attack_) {
    case Attack::ask: return ask(connections);
    case Attack::connect: return connect();
    case Attack::close: return leave_what_lingers();
  }
}

/// Half of its connections are new each time. They ask until no more can be sent.
void HostileUsers::ask(std::vector<UniqueFd>& connections) {
  connections.resize(std::min(connections.size(), kConnections / 2));
  while (connections.size() < kConnections) {
    auto made = shim::connect_nameserver(nameserver_, false);
    if (!made) break;
    connections.push_back(std::move(*made));
  }
  for (const UniqueFd& one : connections) {
    while (send(one, shim::ImportRequest{"nobody", {"Files", 1, 0, 0}, 600'000, shim::Gate::handoff}) &&
           send(one, shim::ListRequest{}))
      continue;
  }
}

void HostileUsers::connect() {
  for (std::size_t i = 0; i < kConnections; ++i) {
    const auto made = shim::connect_nameserver(nameserver_, false);
    while (made && i % 2 == 0 && send(*made, shim::ListRequest{})) continue;
  }
}

/// Each time on a new binding's bell.
void HostileUsers::leave_what_lingers() {
  const auto socket = shim::connect_nameserver(nameserver_, false);
  const InterfaceId& id = ::Bench::kPdl.interface;
  if (!socket || !send(*socket, shim::ImportRequest{LrpcDomains::kExportedName,
                                                    {std::string(id.name), id.major, id.minor, id.hash},
                                                    0,
                                                    shim::Gate::adaptive}))
    return;
  const auto answer = shim::receive_message(socket->get(), std::chrono::seconds(10));
  if (!answer || !*answer || !std::holds_alternative<shim::Bound>((*answer)->body)) return;
  auto [end, other] = lingering_connection();
  if (!end) return;
  (void)shim::offer_on_bell((*answer)->fds.back().get(), shim::BellMessage::callback, end.get(),
                            std::chrono::milliseconds(0));
  shim::close_aside(std::move(end), {});  // it may be the last
  others_.push_back(std::move(other));
  if (others_.size() > kLingering) others_.pop_front();
}

bool HostileUsers::send(const UniqueFd& to, shim::BinderBody body) {
  return shim::send_message(to.get(), {++request_, std::move(body), {}, {}}, false).has_value();
}

}  // namespace lrpc::bench
