// Control requests: what layers ask of each other besides moving messages (RPC in the x-Kernel §2, §5 "Information
// Loss"). One struct a request, with its parameters and its answer, instead of the paper's opcode, buffer and length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc::control {

/// To a protocol or session below: the largest message it can deliver (the paper's MTU request).
struct MaximumMessage {
  std::size_t size = 0;
};
/// The largest message that it delivers without cutting it: what a layer that cuts should send.
struct OptimumMessage {
  std::size_t size = 0;
};
/// To a protocol above: the largest message that it will ever push (§3.1: asked by VIP at open).
struct AdvertisedMaximum {
  std::size_t size = 0;
};
/// The local host as this protocol is known to others.
struct LocalHost {
  HostAddress host;
};
/// To a session: the host at the other end. Zero where only a device address is known.
struct PeerHost {
  HostAddress host;
};
/// To ETH, or whatever lies above it: is `host` on a local network, and what is its address there? (ARP's request.)
/// Errc::host_unreachable: it is not, does not answer, or has not yet: Peers::path_changes() says when to ask again.
struct Resolve {
  HostAddress host;
  EthernetAddress ethernet;
};
/// The reverse. Errc::host_unreachable: not known.
struct ResolveReverse {
  EthernetAddress ethernet;
  HostAddress host;
};
/// To the table of VIP hosts: does `host` speak VIP for this protocol number? False also where it has not been heard
/// yet.
struct SpeaksVip {
  HostAddress host;
  ProtocolNumber protocol = 0;
  bool speaks = false;
};
/// To the table of VIP hosts: from now on this host speaks VIP for `protocol` (or no longer does), which is to be
/// advertised.
struct AdvertiseVip {
  ProtocolNumber protocol = 0;
  bool speaks = true;
};
/// To a session that measures: the smoothed round trip, and after what time it sends again. Zero: nothing measured yet.
struct RoundTrip {
  Duration smoothed{};
  Duration retransmission_timeout{};
};
/// To any protocol: what it has counted. Fields that mean nothing to it stay zero.
struct Statistics {
  std::uint64_t sent = 0;             ///< Messages pushed to the layer below.
  std::uint64_t received = 0;         ///< Messages demultiplexed to a session.
  std::uint64_t malformed = 0;        ///< Dropped: the header is not this protocol's.
  std::uint64_t no_session = 0;       ///< Dropped: nobody has enabled this.
  std::uint64_t duplicates = 0;       ///< Dropped or answered again: seen before.
  std::uint64_t retransmissions = 0;  ///< Messages sent again.
  std::uint64_t refused = 0;          ///< Dropped: not authentic, or over a limit.
  std::uint64_t failed = 0;           ///< Calls that ended in call-failed or call-aborted.
  std::size_t sessions = 0;           ///< Sessions now.
  std::size_t state = 0;              ///< Records kept for peers or for messages under way, besides sessions.
};
/// To a client's session. Errc::ok: it carries one call at a time, and once that is cancelled the next; or any number.
/// Sessions that keep a cancelled call until the server has answered do not know this request.
struct FreedByCancel {};
/// To a session whose messages are lost only together with its connection: the number of the present one, which no
/// other has; 0: there is none, and the next message makes one. Sessions over datagrams do not know this request.
struct Connection {
  std::uint64_t number = 0;
};
/// To a GROUP: its address on this host, and the hosts for which it stands. Valid until Groups::set().
struct Members {
  HostAddress group;
  std::span<const HostAddress> hosts;
};
/// A message of a conversation (PSYNC): who has pushed it, in which of its host's lives, and which one it was in that,
/// from 1.
struct MessageName {
  HostAddress host;
  std::uint32_t life = 0;
  std::uint32_t sequence = 0;
  friend bool operator==(const MessageName&, const MessageName&) = default;
};
/// To a session of a conversation: the context of a message. Errc::name_unknown: it is not here (yet), or all members
/// have it and it is not kept any more.
struct Context {
  /// Asked for. With sequence 0: the last one that has come up through this session, or that this host has pushed
  /// through it; the answer has its name.
  MessageName message{};
  static constexpr std::size_t kMost = 16;
  std::array<MessageName, kMost> before{};  ///< What directly precedes it, in no order.
  std::size_t count = 0;                    ///< Of those.
  bool delivered = false;                   ///< It has come up, or this host has pushed it; else it waits for others.
  std::size_t lacking = 0;                  ///< Members that are not known to have been given it.
};
/// To a session of a conversation: how many messages are outstanding.
struct Outstanding {
  std::size_t here = 0;       ///< Others have told of them, and this host has not been given them.
  std::size_t elsewhere = 0;  ///< This host has pushed them, and not all members that it waits for are known to have
                              ///< been given them.
};
/// To a protocol: let go of all state that is not in use, as its idle sweep would. For tests of "no state left behind".
struct DropIdle {};

/// To a session, from whoever must decide what its peer may do: how do we know that it is the host it says it is?
/// Sessions without an authentication layer below do not know this request, or answer that it is not.
struct Authenticated {
  bool authenticated = false;
  std::array<char, 64>
      key_name{};  ///< Which key vouches for the peer: the key file's host or network. Ends with a zero.
};
/// To a protocol that reads keys: has this host one for `host`, has that one shown that it has it, too, and did the
/// last handshake with it fail because the two have no cipher in common?
struct SharesKey {
  HostAddress host;
  bool has_key = false;
  bool shown = false;
  bool no_cipher = false;
};
/// To a server's session in place of Session::reply(), once: the request is not executed, and its client is told why.
/// `detail`: what the protocol that tells it has a number for. Sessions that cannot tell it do not know this request.
struct Refuse {
  Errc reason = Errc::bad_procedure;
  std::uint32_t detail = 0;
};
/// To a server's session: does anybody still wait for the answer? False once its client has failed or has begun again,
/// as far as that is known. Sessions that never know do not know this request.
struct Wanted {
  bool wanted = true;
};
/// To the protocol above, at a server whose requests are executed atomically, one at a time: it has answered one.
/// Errc::ok: all that this request has changed is permanent from now on, also after a crash. Else, and until this has
/// returned, nothing of it is, and its client is told nothing.
struct Commit {};
/// The same, when it has let go of one without an answer: nothing of it is to remain.
struct Rollback {};
/// To a server's session: as whom the client presents itself (AUTH_SYS). Nothing proves it.
struct ClaimedUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::array<char, 64> machine{};  ///< Ends with a zero; longer names are cut.
};
/// To the protocol above, of a message that it has pushed and that several should have answered, or one: this does not
/// come. See Transaction::completed() for the reasons.
struct PushFailed {
  HostAddress peer;
  Errc reason = Errc::call_failed;
};
/// To a protocol that reads keys: read them again. Peers whose key has gone or changed are cut off at once.
struct RereadKeys {
  std::size_t keys = 0;  ///< How many there are now.
};

using Request = std::variant<MaximumMessage, OptimumMessage, AdvertisedMaximum, LocalHost, PeerHost, Resolve,
                             ResolveReverse, SpeaksVip, AdvertiseVip, RoundTrip, Statistics, DropIdle, Authenticated,
                             SharesKey, RereadKeys, Refuse, ClaimedUser, FreedByCancel, Connection, Members, PushFailed,
                             Wanted, Commit, Rollback, Context, Outstanding>;

/// Answers `request` with `answer`, if it is one of that kind. False: it is another.
template <class Answer>
[[nodiscard]] bool answered(Request& request, const Answer& answer) noexcept {
  auto* const asked = std::get_if<Answer>(&request);
  if (asked != nullptr) *asked = answer;
  return asked != nullptr;
}

}  // namespace lrpc::netrpc::control
