// The lowest protocol of a graph under attack. All that arrives comes from the fuzzer's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::fuzz {

/// A datagram protocol. Its messages are dropped, or come back to the protocol that sent them, as from a peer that
/// echoes and lies.
class FuzzDevice final : public Protocol {
 public:
  using Protocol::Protocol;
  ~FuzzDevice() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  /// Lets `bytes` arrive from one of a few peers for the `which`th protocol that has enabled itself: in pieces of the
  /// given sizes, the rest as one more piece.
  void arrive(std::uint8_t peer, std::uint8_t which, std::span<const std::byte> bytes,
              std::span<const std::size_t> pieces = {});
  /// Lets the last pushed message arrive again with one byte changed. This passes checks that random bytes never pass.
  void reflect(std::uint8_t peer, std::uint8_t which, std::uint8_t at, std::uint8_t change);

  /// A peer's Ethernet address, both on the wire and in ARP.
  [[nodiscard]] static EthernetAddress ethernet_of(HostAddress host) noexcept {
    return {{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host.value)}};
  }
  [[nodiscard]] static HostAddress peer_host(std::uint8_t peer) noexcept { return {0x0a000002U + (peer & 3U)}; }

  /// Called for every pushed message, with its destination.
  std::function<void(const ParticipantSet& participants, std::span<const std::byte> bytes)> on_push;

 private:
  class Port;
  struct Enabled {
    Protocol* high;
    ProtocolNumber protocol;
  };
  [[nodiscard]] Port* port(Protocol& high, ProtocolNumber protocol, HostAddress peer);

  std::vector<Enabled> enabled_;
  std::vector<SessionRef> ports_;
  std::vector<std::byte> last_;
};

/// The kind FUZZ. Appends the devices that are made to `made`, which must outlive the graph.
[[nodiscard]] ProtocolKind fuzz_device_kind(std::vector<FuzzDevice*>& made);

}  // namespace lrpc::netrpc::fuzz
