// GRPC: requests to one server or to all members of a group, and their replies (§4.2). What becomes of a call is in
// collation.h.
#include <span>

#include "netrpc/composite/suite/collation.h"

namespace lrpc::netrpc::composite {

namespace {

constexpr EventName<ItemRef> kRequestLost{"Request_Lost"};

class GroupRpc final : public MicroProtocol {
 public:
  explicit GroupRpc(MicroParts& parts)
      : parts_(parts),
        type_(parts.attribute<CallType>(kCallType, Visibility::of_all, InHeader::yes)),
        call_(parts.attribute<CallId>("call", Visibility::of_owner, InHeader::yes)),
        request_lost_(parts.own(kRequestLost, [this](const ItemRef& item) { request_lost(*item); })),
        collation_(parts) {
    parts_.handle(kMessagePushedToCp, [this](const Entering& entering) {
      MicroParts::call_of(entering) != 0 ? request(entering) : reply(entering);
    });
    parts_.handle(kMessagePoppedToCp, [this](const Entering& entering) {
      const ItemRef item = parts_.item_of(entering);
      if (item && type_(*item) == CallType::request) parts_.mark_request(item);
      parts_.bag().insert(item);
    });
    parts_.handle(
        kMessageReadyToBeSent, [this](const ItemRef& item) { replied(item); },
        [this](const ItemRef& item) {
          return item->direction == Direction::up && item->has_entered() &&
                 (type_(*item) == CallType::reply || type_(*item) == CallType::lost);
        });
    parts_.handle(kTooLongAgain, [this](const ItemRef& item) { not_sent_again(item); });
  }

 private:
  // ---- from above: one request to a group becomes one to each member ----

  void reply(const Entering& entering) noexcept {
    const ItemRef item = parts_.item_of(entering);
    if (!item || !item->answers()) return;  // refused
    type_.set(*item, CallType::reply);
    call_.set(*item, call_(*item->answers()));
    parts_.bag().insert(item);
    if (item->outcome() == Errc::message_too_long) tell_lost(*item, true);
    // In push style the protocol above hears of this, and may push again.
    if (item->outcome() == Errc::limit_reached && parts_.style() == CallStyle::call) tell_lost(*item, false);
  }

  void request(const Entering& entering) noexcept {
    const CallId call = MicroParts::call_of(entering);
    GroupSession* const group = MicroParts::group_of(entering);
    const std::span<const SessionRef> members = group != nullptr ? group->members() : std::span(&entering.session, 1);
    MicroParts::tell(entering, Errc::limit_reached);
    if (!collation_.begin(call, entering.session.get(), group, members)) return;
    std::size_t sent = 0;
    Errc why = Errc::host_unreachable;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const bool there = group == nullptr || members[i];
      const Errc outcome = there ? send(entering, members[i], call) : group->why_not(i).code;
      if (outcome == Errc::ok) {
        ++sent;
        continue;
      }
      if (!tells_more(why)) why = outcome;
      collation_.not_asked(call, i, outcome);
    }
    MicroParts::tell(entering, sent != 0 ? Errc::ok : why);
    if (sent != 0) collation_.asked(call);
  }

  [[nodiscard]] Errc send(const Entering& entering, const SessionRef& member, CallId call) noexcept {
    const ItemRef item = parts_.item_for(entering, member);
    if (!item) return Errc::limit_reached;
    type_.set(*item, CallType::request);
    call_.set(*item, call);
    parts_.bag().insert(item);
    return item->outcome();
  }

  // ---- a reply that cannot be sent, and what ACK sends again and a link that has shrunk does not carry ----

  /// `counted`: the word has a number, and ACK sends it again. Otherwise it needs no room, and is sent once.
  void tell_lost(const Item& reply, bool counted) noexcept {
    const ItemRef word = parts_.bag().new_item(reply.session(), Direction::down, Message(parts_.host().pool()));
    if (!word) return;
    type_.set(*word, CallType::lost);
    call_.set(*word, call_(reply));
    if (counted) MicroParts::mark_entered(word);
    parts_.bag().insert(word);
  }

  /// `lost` takes the reply's place and number, so that the receiver does not wait for that number in vain.
  void not_sent_again(const ItemRef& item) noexcept {
    if (type_(*item) == CallType::request) return parts_.events().raise(*request_lost_, Raise::asynchronous, item);
    if (type_(*item) != CallType::reply) return;
    type_.set(*item, CallType::lost);
    item->message = Message(parts_.host().pool());
  }

  void request_lost(const Item& item) noexcept {
    const CallId call = call_(item);
    if (collation_.fails(call, item.session().get(), Errc::call_lost)) collation_.heard(call);
  }

  // ---- what comes from below ----

  /// All other micro-protocols have let the reply go upwards. It waits in the collation until enough have come. It does
  /// not stay in the bag, where later messages might have to wait for it.
  void replied(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const CallId call = call_(*item);
    const bool news = type_(*item) == CallType::reply ? collation_.takes(call, item)
                                                      : collation_.fails(call, item->session().get(), Errc::call_lost);
    parts_.bag().erase(item);
    if (news) collation_.heard(call);
  }

  MicroParts parts_;
  Attribute<CallType> type_;
  Attribute<CallId> call_;
  const Raisable<ItemRef>* const request_lost_;
  Collation collation_;
};

}  // namespace

MicroKind grpc_kind() {
  return {.name = "GRPC",
          .summary = "requests to a server or to a group, and their replies",
          .exports = {kCallBegun.name, kMemberHeard.name},
          .imports = {kMessagePushedToCp.name, kMessagePoppedToCp.name, kMessageReadyToBeSent.name, kCallEnded.name,
                      kCallDecided.name},
          .may_import = {kSuspectHostDead.name, kTooLongAgain.name, kServerSilent.name, kHasFailed.name,
                         kCallMayEnd.name, kMayEnd.name},
          .needs = {{"SYNC", "ASYNC"}, {"ONE_ACCEPT", "ALL_ACCEPT", "MAJORITY"}},
          .verifies = true,
          .make = make_micro<GroupRpc>};
}

}  // namespace lrpc::netrpc::composite
