// The machine's network interfaces, as the devices need to know them.
#pragma once

#include <linux/if_packet.h>

#include <chrono>
#include <string>

#include "lrpc/detail/shim/result.h"
#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

struct Interface {
  std::string name;
  int index = 0;
  EthernetAddress ethernet;
  HostAddress host;     ///< Its first IPv4 address; not known if it has none.
  std::size_t mtu = 0;  ///< Bytes in a frame after the Ethernet header.
};

/// The interface called `name`. If `name` is empty: the interface of the default route, else the only one that is up
/// besides loopback. Errors: invalid_argument (there is none, or several: the text names them), system_error.
Result<Interface> find_interface(const std::string& name);

/// The interface that has the address `host`, if it uses ARP. Errors: name_unknown (there is none), system_error.
Result<Interface> find_interface_of(HostAddress host);

/// The address of `to` (zeros: of no peer) on the interface `index`, for packet sockets under the ethertype `type`.
[[nodiscard]] sockaddr_ll link_address(int index, std::uint16_t type, const EthernetAddress& to = {}) noexcept;

/// Whether the kernel has looked for a route and says by this errno that there is none: no route at all, or one of type
/// unreachable, prohibit or blackhole (ip-route(8)). Any other errno is no answer.
[[nodiscard]] bool means_no_route(int error) noexcept;

/// Whether there is a route to `host`: ok, host_unreachable, or limit_reached (no descriptor, port or memory to look).
[[nodiscard]] Errc route_to(HostAddress host) noexcept;
/// The longest IP datagram that reaches `host` unfragmented, as far as the kernel knows now; 0: not known.
std::size_t path_mtu(HostAddress host) noexcept;
/// Sends a datagram of path_mtu() bytes (at most 9000), which must not be fragmented, to the discard port (RFC 863) of
/// `host`. A router whose next link carries less drops it and reports that, and soon path_mtu() returns the smaller
/// size (RFC 1191). Keep the returned socket open until then: the kernel ignores reports for a closed one (udp(7)).
/// Never blocks. None: nothing was sent.
[[nodiscard]] UniqueFd ask_path_mtu(HostAddress host) noexcept;
/// Blocks until a router, or the host itself, has answered what ask_path_mtu() has sent, at most `limit`. Many hosts
/// never answer.
void wait_for_answer(const UniqueFd& question, std::chrono::milliseconds limit) noexcept;

}  // namespace lrpc::netrpc
