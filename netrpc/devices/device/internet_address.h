// IPv4 addresses as the kernel's sockets want them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

[[nodiscard]] inline sockaddr_in socket_address(HostAddress host, std::uint16_t port = 0) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host.value);
  return address;
}

}  // namespace lrpc::netrpc
