// IPv4 addresses as the kernel's sockets want them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <string>

#include "lrpc/netrpc/address.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

[[nodiscard]] inline sockaddr_in socket_address(HostAddress host, std::uint16_t port = 0) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host.value);
  return address;
}

/// Why a socket of the instance `name` is not bound to `address`, by bind(2)'s `error`.
[[nodiscard]] inline Error cannot_bind(const std::string& name, HostAddress address, int error) {
  if (error != EADDRNOTAVAIL) return system_error("bind", error);
  return {Errc::invalid_argument, name + ": this machine has no address " + to_string(address)};
}

}  // namespace lrpc::netrpc
