// IPv4 addresses in the form that the kernel's sockets use.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cerrno>
#include <string>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

[[nodiscard]] inline sockaddr_in socket_address(HostAddress host, std::uint16_t port = 0) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host.value);
  return address;
}

/// The error of a socket of the instance `name` that bind(2) could not bind to `address` and `port` (0: any), with
/// `error`.
[[nodiscard]] inline Error cannot_bind(const std::string& name, HostAddress address, std::uint16_t port, int error) {
  if (error == EADDRNOTAVAIL)
    return {Errc::invalid_argument, name + ": this machine has no address " + to_string(address)};
  if (error == EACCES && port != 0)
    return {Errc::not_permitted, name + ": this user may not have port " + std::to_string(port) +
                                     "; give CAP_NET_BIND_SERVICE to this program, or use a port from 1024 on"};
  return system_error("bind", error);
}

}  // namespace lrpc::netrpc
