// Which ports UDP's protocol numbers have, here and at other hosts: the same for real sockets and for simulated ones.
#pragma once

#include <optional>
#include <vector>

#include "lrpc/netrpc/graph.h"

namespace lrpc::netrpc {

struct UdpPorts {
  std::uint32_t peers = 24000;        ///< The port of protocol number 0 at other hosts.
  std::optional<std::uint32_t> here;  ///< At this host; 0: any free ones. Not given: as at other hosts.
  /// This host's own port, whatever the protocol number, for one protocol alone. Then `here` is not given.
  std::optional<std::uint16_t> only{};
  /// Whether peers may send from other ports than the one above. Then host and port together identify a peer, and the
  /// protocol above must tell two ports of one host apart (ProtocolKind::tells_ports_apart).
  bool any_peer = false;

  /// The port to bind for `number`; 0: any free one. Nullopt: there is no such port.
  [[nodiscard]] std::optional<std::uint16_t> local(ProtocolNumber number) const noexcept {
    if (only) return only;
    if (here == 0U) return std::uint16_t{0};
    return port(here.value_or(peers), number);
  }
  /// The port to which messages under `number` go by default. Nullopt: there is no such port.
  [[nodiscard]] std::optional<std::uint16_t> remote(ProtocolNumber number) const noexcept {
    return port(peers, number);
  }
  /// Whether a peer may have this port.
  [[nodiscard]] bool allows(ProtocolNumber number, std::uint16_t remote_port) const noexcept {
    return remote_port != 0 && (any_peer || remote(number) == remote_port);
  }

 private:
  [[nodiscard]] static std::optional<std::uint16_t> port(std::uint32_t first, ProtocolNumber number) noexcept {
    const std::uint64_t port = std::uint64_t{first} + number;
    if (port == 0 || port > 0xffff) return std::nullopt;
    return static_cast<std::uint16_t>(port);
  }
};

/// The options `ports`, `local_ports`, `local_port` and `peer_ports` of a kind, before its `others`, and what a graph
/// has given for them. Errors: invalid_argument.
[[nodiscard]] std::vector<OptionDescription> udp_port_options(std::vector<OptionDescription> others);
[[nodiscard]] Result<UdpPorts> udp_ports(const Options& given);
/// ProtocolKind::many_ports of the kinds with these options.
[[nodiscard]] bool udp_many_ports(const Options& given);

}  // namespace lrpc::netrpc
