// Who takes part in a session (RPC in the x-Kernel §2).
#pragma once

#include <cstdint>
#include <string>

#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

/// One participant, identified as far as the protocols of the graph need it: each reads the fields of its own level.
/// Fields that are zero are not given.
struct Participant {
  HostAddress host;
  EthernetAddress ethernet;   ///< ETH's: in place of `host`, or beside it.
  std::uint16_t port = 0;     ///< UDP's, where it is not the one that all hosts have for the protocol number.
  std::uint16_t channel = 0;  ///< CHANNEL's: a given channel instead of any free one.
  std::uint16_t command = 0;  ///< SELECT's and M_RPC's: the procedure identifier.
  std::uint32_t program = 0;  ///< Sun RPC's: the interface, its version and the procedure (RFC 5531 §8).
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  friend bool operator==(const Participant&, const Participant&) = default;
};

/// The participants of a session. `open` and `open_done` get both of them; for `open_enable`, a field that is not given
/// means anybody. Several remote participants are given as one: `remote.host` is then the address of a group that the
/// host knows (Host::groups()).
struct ParticipantSet {
  ProtocolNumber protocol = 0;  ///< Identifies the *invoking* protocol to the one below.
  Participant local;            ///< The paper's convention: the first element is the local participant.
  Participant remote;
  friend bool operator==(const ParticipantSet&, const ParticipantSet&) = default;
};

/// For traces: "201 10.0.0.1 -> 10.0.0.2", and behind that ":24201" where a port is known.
[[nodiscard]] std::string to_string(const ParticipantSet& participants);

}  // namespace lrpc::netrpc
