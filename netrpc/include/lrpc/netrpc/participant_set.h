// The participants of a session (RPC in the x-Kernel §2).
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

/// One participant, identified as far as the protocols of the graph need it: each reads the fields of its own level.
/// Fields that are zero are not given.
struct Participant {
  HostAddress host{};
  EthernetAddress ethernet{};  ///< For ETH: instead of `host`, or with it.
  std::uint16_t port = 0;      ///< For UDP, if it is not the port that all hosts use for the protocol number.
  std::uint16_t channel = 0;   ///< For CHANNEL: this channel instead of any free one.
  std::uint16_t command = 0;   ///< For SELECT and M_RPC: the procedure identifier.
  std::uint32_t program = 0;   ///< For Sun RPC: the interface, its version and the procedure (RFC 5531 §8).
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  friend bool operator==(const Participant&, const Participant&) = default;
};

/// The participants of a session. `open` and `open_done` get both of them; for `open_enable`, a field that is not given
/// matches anybody. Several remote participants are given as one: `remote.host` is then the address of a group that the
/// host knows (Host::groups()).
struct ParticipantSet {
  ProtocolNumber protocol = 0;  ///< Identifies the *invoking* protocol to the one below.
  Participant local;            ///< The paper's convention: the first element is the local participant.
  Participant remote;
  friend bool operator==(const ParticipantSet&, const ParticipantSet&) = default;
};

/// For traces: "201 10.0.0.1 -> 10.0.0.2", followed by ":24201" if a port is known.
[[nodiscard]] std::string to_string(const ParticipantSet& participants);

}  // namespace lrpc::netrpc
