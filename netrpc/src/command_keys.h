// The key of sessions of protocols that distinguish the protocols above by commands: SELECT and M_RPC.
#pragma once

#include <cstdint>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/map.h"

namespace lrpc::netrpc {

class Protocol;

/// The key of a session of a client on this host. Peers choose none of its fields, so its hash needs no secret seed.
struct CommandSessionKey {
  HostAddress host;
  std::uint16_t command = 0;
  const Protocol* high = nullptr;
  std::uint16_t port = 0;  ///< The peer's, for protocols that tell ports apart.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(host.value, std::uint64_t{port} << 16 | command), reinterpret_cast<std::uintptr_t>(high));
  }
  friend bool operator==(const CommandSessionKey&, const CommandSessionKey&) = default;
};

}  // namespace lrpc::netrpc
