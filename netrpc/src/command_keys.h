// The key of sessions of protocols that tell users apart by commands: SELECT and M_RPC.
#pragma once

#include <cstdint>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/map.h"

namespace lrpc::netrpc {

class Protocol;

/// A session of a client here, which chooses all of it.
struct CommandSessionKey {
  HostAddress host;
  std::uint16_t command = 0;
  const Protocol* high = nullptr;
  std::uint16_t port = 0;  ///< Of the peer, for who tells the ports of one host apart.
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(host.value, std::uint64_t{port} << 16 | command), reinterpret_cast<std::uintptr_t>(high));
  }
  friend bool operator==(const CommandSessionKey&, const CommandSessionKey&) = default;
};

}  // namespace lrpc::netrpc
