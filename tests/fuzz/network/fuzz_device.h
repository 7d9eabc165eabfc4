// The lowest protocol of a graph under attack: everything that arrives comes out of the fuzzer's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::fuzz {

/// A datagram protocol whose messages go nowhere, or come back to the protocol that sent them, as a peer that answers
/// with echoes and lies would do.
class FuzzDevice final : public Protocol {
 public:
  using Protocol::Protocol;
  ~FuzzDevice() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  /// `bytes` arrive from one of a few peers for the `which`th protocol that has enabled itself.
  void arrive(std::uint8_t peer, std::uint8_t which, std::span<const std::byte> bytes);
  /// The last message that was pushed arrives again with one byte changed: past checks that random bytes never pass.
  void reflect(std::uint8_t peer, std::uint8_t which, std::uint8_t at, std::uint8_t change);

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

/// The kind FUZZ; the device made last is found through `made`, which outlives the graph.
[[nodiscard]] ProtocolKind fuzz_device_kind(FuzzDevice*& made);

}  // namespace lrpc::netrpc::fuzz
