// Micro-protocols: numbers, no duplicates, order, acknowledgement, membership, calls to one server or to a group
// (Bhatti and Schlichting §3.5 and §4.2; NUMBER is what their GRPC does for the others).
// docs/COMPOSITE.md says what each promises.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "netrpc/composite/micro_protocol.h"
#include "netrpc/composite/suite/peer_table.h"

namespace lrpc::netrpc::composite {

/// Raised by ACK: a peer has not acknowledged a message in all its tries.
inline constexpr EventName<Peer> kSuspectHostDead{"Suspect_Host_Dead"};

/// Raised by ACK, synchronously: this item, which it sends again, has become too long for the layer below. A handler
/// may give it a shorter message, which is sent instead; otherwise it is given up.
inline constexpr EventName<ItemRef> kTooLongAgain{"Too_Long_Again"};

enum class MembershipChange : std::uint8_t { joined, failed };
/// Raised by MEMBERSHIP.
inline constexpr EventName<Peer, MembershipChange> kMembershipChange{"Membership_Change"};
/// Exported by MEMBERSHIP: who belongs to the group, in no order. Throws std::bad_alloc.
inline constexpr ProcedureName<std::vector<Peer>()> kGetGroup{"GetGroup"};

/// Exported by UNIQUE: for how long, at least, it remembers a message.
inline constexpr ProcedureName<Duration()> kRemembers{"Remembers"};

/// Exported by ACK: the first number of a received message's flow that its sender might still send when it sent the
/// message. 0: the sender does not say.
inline constexpr ProcedureName<std::uint64_t(const Item&)> kComesFirst{"Comes_First"};

/// Exported by MEMBERSHIP: whether the peer has failed, and has not been heard of since.
inline constexpr ProcedureName<bool(const Peer&)> kHasFailed{"Has_Failed"};

/// Raised by GRPC, synchronously: a call begins through this session, perhaps to a group. No request has left yet.
inline constexpr EventName<CallId, const Session*> kCallBegun{"Call_Begun"};
/// How many members a call was sent to, and how many of them have answered or failed so far. A member that has failed
/// may still answer.
struct Tally {
  std::size_t members = 0;
  std::size_t answered = 0;
  std::size_t failed = 0;
};
/// Raised by GRPC: one more member has answered or failed.
inline constexpr EventName<CallId, Tally> kMemberHeard{"Member_Heard"};
/// Raised by ONE_ACCEPT, ALL_ACCEPT or MAJORITY: the call ends, with replies (ok) or as a failure.
inline constexpr EventName<CallId, Errc> kCallDecided{"Call_Decided"};
/// Raised by STILL_WORKING: nothing has been heard of a call from the server at the other end of this session.
inline constexpr EventName<CallId, const Session*> kServerSilent{"Server_Silent"};
/// Exported by REPLY_ORDER: whether a decided call may end. If not, Call_May_End is raised when it may.
inline constexpr ProcedureName<bool(CallId)> kMayEnd{"May_End"};
inline constexpr EventName<CallId> kCallMayEnd{"Call_May_End"};
/// GRPC's public attribute: the type of each message. `lost` is sent in place of a reply: there will be none.
enum class CallType : std::uint8_t { none, request, reply, lost };
inline constexpr const char* kCallType = "type";

/// Decides from a tally whether a call ends, and with what; std::nullopt: not yet. A pure function.
using Decision = std::optional<Errc> (*)(const Tally& tally);
[[nodiscard]] std::optional<Errc> one_accepts(const Tally& tally);
[[nodiscard]] std::optional<Errc> all_accept(const Tally& tally);
[[nodiscard]] std::optional<Errc> majority_accepts(const Tally& tally);

/// NUMBER's public attributes. Zero: the message has no number, because a micro-protocol has made it.
inline constexpr const char* kNumber = "number";  ///< std::uint64_t: from 1, for each peer and each stream.
inline constexpr const char* kStream = "stream";  ///< std::uint32_t: the random name of that count.

/// Reads NUMBER's attributes of messages. Made in MicroParts::later().
class Numbers {
 public:
  explicit Numbers(MicroParts& all)
      : number_(all.public_attribute<std::uint64_t>(kNumber)),
        stream_(all.public_attribute<std::uint32_t>(kStream)),
        host_(&all.host()) {}
  [[nodiscard]] std::uint64_t number(const Item& item) const noexcept { return number_(item); }
  [[nodiscard]] std::uint32_t stream(const Item& item) const noexcept { return stream_(item); }
  [[nodiscard]] Flow flow(const Item& item) const noexcept { return {Peer::of(*host_, item), stream(item)}; }
  /// A message with a number has come from below.
  [[nodiscard]] bool came(const Item& item) const noexcept {
    return item.direction == Direction::up && number(item) != 0;
  }
  /// A message with a number leaves, or is sent again.
  [[nodiscard]] bool leaves(const Item& item) const noexcept {
    return item.direction == Direction::down && number(item) != 0;
  }

 private:
  PublicAttribute<std::uint64_t> number_;
  PublicAttribute<std::uint32_t> stream_;
  const Host* host_;
};

[[nodiscard]] MicroKind number_kind();
[[nodiscard]] MicroKind unique_kind();
[[nodiscard]] MicroKind fifo_kind();
[[nodiscard]] MicroKind ack_kind();
[[nodiscard]] MicroKind membership_kind();
[[nodiscard]] MicroKind grpc_kind();
[[nodiscard]] MicroKind sync_kind();
[[nodiscard]] MicroKind async_kind();
[[nodiscard]] MicroKind one_accept_kind();
[[nodiscard]] MicroKind all_accept_kind();
[[nodiscard]] MicroKind majority_kind();
[[nodiscard]] MicroKind bounded_kind();
[[nodiscard]] MicroKind unbounded_kind();
[[nodiscard]] MicroKind still_working_kind();
[[nodiscard]] MicroKind reply_order_kind();
[[nodiscard]] MicroKind avoid_interference_kind();
[[nodiscard]] MicroKind terminate_orphans_kind();
[[nodiscard]] MicroKind atomic_kind();
/// datagram_kinds(): those without calls; suite_kinds(): all.
[[nodiscard]] std::vector<MicroKind> datagram_kinds();
[[nodiscard]] std::vector<MicroKind> suite_kinds();

/// The options that most of them have, `peers` and `idle`, after `others`.
[[nodiscard]] std::vector<OptionDescription> with_peer_options(std::vector<OptionDescription> others = {});
/// `times`: multiplies `idle`. More than 1: the table is a receiver's. It remembers a flow for longer than the sender
/// does, so that no flow goes on after its receiver has forgotten it.
template <class Key, class State>
[[nodiscard]] PeerTable<Key, State> peer_table(MicroParts& parts, int times = 1) {
  return {parts.host(), parts.options.number("peers", 4096),
          parts.options.duration("idle", std::chrono::seconds(60)) * times, times > 1};
}
inline constexpr int kReceiversRemember = 4;
/// What waits in one of them takes at most an eighth of the host's buffers.
inline constexpr std::size_t kShareOfBuffers = 8;

}  // namespace lrpc::netrpc::composite
