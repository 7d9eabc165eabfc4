// Control requests: what layers ask of each other besides moving messages (RPC in the x-Kernel §2, §5 "Information
// Loss"). One struct a request, with its parameters and its answer, instead of the paper's opcode, buffer and length.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <variant>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/address.h"
#include "lrpc/netrpc/clock.h"

namespace lrpc::netrpc::control {

/// To a protocol or session below: the largest message it can deliver (the paper's MTU request).
struct MaximumMessage {
  std::size_t size = 0;
};
/// The largest message that the layer below delivers unfragmented. A layer that fragments should send this size.
struct OptimumMessage {
  std::size_t size = 0;
};
/// To a protocol above: the largest message that it will ever push (§3.1: asked by VIP at open).
struct AdvertisedMaximum {
  std::size_t size = 0;
};
/// This host's address as the protocol's peers know it.
struct LocalHost {
  HostAddress host;
};
/// To a session: the host at the other end. Zero where only a device address is known.
struct PeerHost {
  HostAddress host;
};
/// To ETH, or a layer above it: is `host` on a local network, and what is its address there? (ARP's request.) Error:
/// host_unreachable if it is not there or has not answered (yet); ask again when Peers::path_changes() has changed.
struct Resolve {
  HostAddress host;
  EthernetAddress ethernet;
};
/// The reverse: the host that has an Ethernet address. Error: host_unreachable if it is not known.
struct ResolveReverse {
  EthernetAddress ethernet;
  HostAddress host;
};
/// To the table of VIP hosts: does `host` speak VIP for this protocol number? False also for a host that has not sent
/// an advertisement yet.
struct SpeaksVip {
  HostAddress host;
  ProtocolNumber protocol = 0;
  bool speaks = false;
};
/// To the table of VIP hosts: this host starts or stops speaking VIP for `protocol`. The table advertises that.
struct AdvertiseVip {
  ProtocolNumber protocol = 0;
  bool speaks = true;
};
/// To a session that measures round trips: the smoothed time and the retransmission timeout. Zero: not measured yet.
struct RoundTrip {
  Duration smoothed{};
  Duration retransmission_timeout{};
};
/// To any protocol: its counters. Those that it does not keep stay zero.
struct Statistics {
  std::uint64_t sent = 0;             ///< Messages pushed to the layer below.
  std::uint64_t received = 0;         ///< Messages demultiplexed to a session.
  std::uint64_t malformed = 0;        ///< Dropped: the header is invalid.
  std::uint64_t no_session = 0;       ///< Dropped: no protocol above has enabled this.
  std::uint64_t duplicates = 0;       ///< Dropped or answered again: seen before.
  std::uint64_t retransmissions = 0;  ///< Messages sent again.
  std::uint64_t refused = 0;          ///< Dropped: not authentic, or over a limit.
  std::uint64_t failed = 0;           ///< Calls that ended in call-failed or call-aborted.
  std::size_t sessions = 0;           ///< Sessions now.
  std::size_t state = 0;              ///< Records kept for peers or for messages under way, besides sessions.
};
/// To a client's session: can the next call begin as soon as the present one is cancelled? Errc::ok: yes. Sessions that
/// keep a cancelled call until the server has answered do not know this request.
struct FreedByCancel {};
/// To a session that loses messages only with its connection: the unique number of the present connection. 0: there is
/// none, and the next message makes one. Sessions over datagrams do not know this request.
struct Connection {
  std::uint64_t number = 0;
};
/// To a GROUP: the group's address on this host, and its members. Valid until Groups::set().
struct Members {
  HostAddress group;
  std::span<const HostAddress> hosts;
};
/// Names a message of a conversation (PSYNC): the host that pushed it, the life of that host, and the number of the
/// message in that life, from 1.
struct MessageName {
  HostAddress host;
  std::uint32_t life = 0;
  std::uint32_t sequence = 0;
  friend bool operator==(const MessageName&, const MessageName&) = default;
};
/// To a session of a conversation: the context of a message. Errc::name_unknown: the message has not arrived, or all
/// members have it and this host has discarded it.
struct Context {
  /// The message asked about. With sequence 0: the last message delivered or pushed through this session; the answer
  /// names it.
  MessageName message{};
  static constexpr std::size_t kMost = 16;
  std::array<MessageName, kMost> before{};  ///< Its direct predecessors, in no order.
  std::size_t count = 0;                    ///< Entries of `before`.
  bool delivered = false;                   ///< Delivered here, or pushed by this host; else it waits for others.
  std::size_t lacking = 0;                  ///< Members to which it is not known to have been delivered.
};
/// To a session of a conversation: how many messages are outstanding.
struct Outstanding {
  std::size_t here = 0;       ///< Known from other members, but not delivered to this host yet.
  std::size_t elsewhere = 0;  ///< Pushed by this host, but not known to be delivered to all members that it waits for.
};
/// To a protocol: drop all state that is not in use, as the idle sweep does. For tests that check that no state is
/// left.
struct DropIdle {};
/// From a device without room for another peer, to the protocol above: drop the sessions that nobody refers to, if they
/// can be opened again without loss. Protocols whose sessions hold state that safety needs do not know this request.
struct MakeRoom {};

/// To a session: is its peer authenticated, and by which key? Asked before deciding what the peer may do. Sessions
/// without an authentication layer below do not know this request, or answer no.
struct Authenticated {
  bool authenticated = false;
  std::array<char, 64> key_name{};  ///< The host or network in the key's line of the key file. Ends with a zero.
};
/// To a protocol that reads keys: does this host have a key for `host`? Has `host` proved that it has this key, too?
/// Did the last handshake fail because the two hosts have no cipher in common?
struct SharesKey {
  HostAddress host;
  bool has_key = false;
  bool shown = false;
  bool no_cipher = false;
};
/// To a server's session, once, in place of Session::reply(): refuses the request, and tells the client why. `detail`:
/// defined by the protocol that carries the refusal. A protocol that cannot carry the reason says call_failed; PAIRED,
/// and REQUEST_REPLY over a connection, say call_lost. Over datagrams REQUEST_REPLY says nothing: the client sends the
/// request again, and it may be served then. Other sessions do not know this request.
struct Refuse {
  Errc reason = Errc::bad_procedure;
  std::uint32_t detail = 0;
};
/// To a server's session: does a client still wait for the answer? False once the client is known to have failed or to
/// have restarted. Sessions that cannot know this do not know this request.
struct Wanted {
  bool wanted = true;
};
/// To the protocol above, at a server that executes requests atomically and one at a time, after it has answered one:
/// make the request's changes permanent. Errc::ok: they survive a crash. Until this returns, and after an error, none
/// of them may be permanent, and the client gets no reply.
struct Commit {};
/// To the same protocol, after it has dropped a request without an answer: undo all changes of the request.
struct Rollback {};
/// To a server's session: the identity that the client claims (AUTH_SYS). Nothing proves it.
struct ClaimedUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::array<char, 64> machine{};  ///< Ends with a zero; longer names are cut.
};
/// To the protocol above: `peer` will not answer a message that the protocol above has pushed. For the reasons see
/// Transaction::completed().
struct PushFailed {
  HostAddress peer;
  Errc reason = Errc::call_failed;
};
/// To a protocol that reads keys: read them again. Peers whose key is gone or has changed are cut off at once.
struct RereadKeys {
  std::size_t keys = 0;        ///< How many there are now.
  std::string* why = nullptr;  ///< Null, or the caller's: gets the reason if the old keys stay in use.
};

/// A request that only a program's own protocols know. It refers to the caller's struct, which must outlive it. The
/// protocol that answers writes the answer into that struct before control() returns.
class Own {
 public:
  template <class T>
  requires(!std::same_as<T, Own> && !std::is_const_v<T>) explicit Own(T& asked) noexcept
      : type_(&typeid(T)), asked_(&asked) {}
  /// Null: it is of another type.
  template <class T>
  [[nodiscard]] T* get_if() const noexcept {
    return *type_ == typeid(T) ? static_cast<T*>(asked_) : nullptr;
  }

 private:
  const std::type_info* type_;
  void* asked_;
};

using Request = std::variant<MaximumMessage, OptimumMessage, AdvertisedMaximum, LocalHost, PeerHost, Resolve,
                             ResolveReverse, SpeaksVip, AdvertiseVip, RoundTrip, Statistics, DropIdle, Authenticated,
                             SharesKey, RereadKeys, Refuse, ClaimedUser, FreedByCancel, Connection, Members, PushFailed,
                             Wanted, Commit, Rollback, Context, Outstanding, MakeRoom, Own>;

/// The struct to which an Own request refers. Null: `request` is not an Own, or refers to another type.
template <class T>
[[nodiscard]] T* own(const Request& request) noexcept {
  const auto* const asked = std::get_if<Own>(&request);
  return asked != nullptr ? asked->get_if<T>() : nullptr;
}

/// Answers `request` with `answer` if it is an Answer; otherwise returns false.
template <class Answer>
[[nodiscard]] bool answered(Request& request, const Answer& answer) noexcept {
  auto* const asked = std::get_if<Answer>(&request);
  if (asked != nullptr) *asked = answer;
  return asked != nullptr;
}

}  // namespace lrpc::netrpc::control
