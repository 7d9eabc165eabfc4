#include "hostile_users.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <variant>

#include "bench.client.h"
#include "calls/lrpc_domains.h"
#include "lrpc/detail/shim/binder/bell.h"

namespace lrpc::bench {
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
    case Attack::close:
    case Attack::close_laden:
    case Attack::close_stuck: return leave_what_is_slow_to_close();
  }
}

/// Replaces half of the user's connections each time. On all of them it sends requests until no more can be sent.
void HostileUsers::ask(std::vector<UniqueFd>& connections) {
  connections.resize(std::min(connections.size(), kConnections / 2));
  while (connections.size() < kConnections) {
    auto made = shim::connect_nameserver(nameserver_, false);
    if (!made) break;
    connections.push_back(std::move(*made));
  }
  for (const UniqueFd& one : connections)
    while (send(one, shim::ImportRequest{"nobody", {"Files", 1, 0, 0}, 600'000, shim::Gate::handoff}) &&
           send(one, shim::ListRequest{}))
      continue;
}

void HostileUsers::connect() {
  for (std::size_t i = 0; i < kConnections; ++i) {
    const auto made = shim::connect_nameserver(nameserver_, false);
    while (made && i % 2 == 0 && send(*made, shim::ListRequest{})) continue;
  }
}

/// Binds anew each time, and sends the descriptor over that binding's bell.
void HostileUsers::leave_what_is_slow_to_close() {
  const auto socket = shim::connect_nameserver(nameserver_, false);
  if (!socket ||
      !send(*socket, shim::ImportRequest{LrpcDomains::kExportedName,
                                         shim::OwnedInterfaceId::of(::Bench::kPdl.interface), 0, shim::Gate::adaptive}))
    return;
  const auto answer = shim::receive_message(socket->get(), std::chrono::seconds(10));
  if (!answer || !*answer || !std::holds_alternative<shim::Bound>((*answer)->body)) return;
  slow_.leave([bell = (*answer)->fds.back().get()](int fd) {
    (void)shim::offer_on_bell(bell, shim::BellMessage::callback, fd, std::chrono::milliseconds(0));
  });
}

bool HostileUsers::send(const UniqueFd& to, shim::BinderBody body) {
  return shim::send_message(to.get(), {++request_, std::move(body), {}, {}}, kDoNotWait).has_value();
}

}  // namespace lrpc::bench
