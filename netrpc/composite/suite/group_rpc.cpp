// GRPC: requests to one server or to all members of a group, and their replies (§4.2).
#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "netrpc/composite/suite/group_calls.h"

namespace lrpc::netrpc::composite {

namespace {

class GroupRpc final : public MicroProtocol {
 public:
  explicit GroupRpc(MicroParts& parts)
      : parts_(parts),
        type_(parts.attribute<CallType>(kCallType, Visibility::of_all, InHeader::yes)),
        call_(parts.attribute<CallId>("call", Visibility::of_owner, InHeader::yes)),
        begun_(parts.exported(kCallBegun)),
        heard_(parts.exported(kMemberHeard)) {
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
          return item->direction == Direction::up && item->has_entered() && type_(*item) == CallType::reply;
        });
    parts_.handle(kCallDecided, [this](CallId call, Errc outcome) { decided(call, outcome); });
    parts_.handle(kCallMayEnd, [this](CallId call) { conclude(call); });
    parts_.handle(kCallEnded, [this](CallId call) { ended(call); });
    parts_.handle(kServerSilent, [this](CallId call, const Session* session) {
      GroupCall* const known = calls_.find(call);
      if (known != nullptr && known->fails(known->find(session), Errc::call_failed)) heard(call);
    });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) { failed(peer); });
    parts_.collate([this](CallId call, Transaction& user, const Message& reply) {
      const GroupCall* const known = calls_.find(call);
      if (known != nullptr && known->to_group) collate(*known, user, reply);
    });
    parts_.later([this](MicroParts& all) {
      has_failed_ = all.procedure(kHasFailed);
      may_end_ = all.procedure(kMayEnd);
    });
  }

 private:
  // ---- what comes from above: who verifies it also makes several of one request ----

  void reply(const Entering& entering) noexcept {
    const ItemRef item = parts_.item_of(entering);
    if (!item || !item->answers()) return;  // refused
    type_.set(*item, CallType::reply);
    call_.set(*item, call_(*item->answers()));
    parts_.bag().insert(item);
  }

  void request(const Entering& entering) noexcept {
    const CallId call = MicroParts::call_of(entering);
    GroupSession* const group = MicroParts::group_of(entering);
    const std::span<const SessionRef> members = group != nullptr ? group->members() : std::span(&entering.session, 1);
    MicroParts::tell(entering, Errc::limit_reached);
    if (!parts_.is_open(call) || !calls_.begin(call, group, members)) return;
    parts_.events().raise(*begun_, Raise::synchronous, call, entering.session.get());
    if (!parts_.is_open(call)) return ended(call);
    std::size_t sent = 0;
    Errc why = Errc::host_unreachable;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Errc outcome = members[i] ? send(entering, members[i], call) : Errc::host_unreachable;
      if (outcome == Errc::ok) {
        ++sent;
        continue;
      }
      why = outcome;
      if (GroupCall* const known = calls_.find(call)) known->fails(&known->members[i], outcome);
    }
    MicroParts::tell(entering, sent != 0 ? Errc::ok : why);
    if (sent == 0) return;
    if (GroupCall* const known = calls_.find(call)) leave_out_failed(*known);
    heard(call);
  }

  [[nodiscard]] Errc send(const Entering& entering, const SessionRef& member, CallId call) noexcept {
    const ItemRef item = parts_.item_for(entering, member);
    if (!item) return Errc::limit_reached;
    type_.set(*item, CallType::request);
    call_.set(*item, call);
    parts_.bag().insert(item);
    return item->outcome();
  }

  /// Nobody waits for those that are known to have failed, where somebody else is left. They have been asked
  /// nevertheless.
  void leave_out_failed(GroupCall& call) const noexcept {
    const auto left = [this](const GroupMember& one) {
      return one.failed == Errc::ok && !(*has_failed_)(Peer::of(parts_.host(), *one.session));
    };
    if (has_failed_ == nullptr || std::ranges::none_of(call.members, left)) return;
    for (GroupMember& member : call.members)
      if (member.failed == Errc::ok && !left(member)) call.fails(&member, Errc::call_failed);
  }

  // ---- who answers, and who does not ----

  /// Everybody else lets the reply go upwards. It waits here until enough have come, not in the bag, where others that
  /// come after it might have to wait for it.
  void replied(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const CallId call = call_(*item);
    GroupCall* const known = calls_.find(call);
    const bool news = known != nullptr && !known->decided &&
                      known->answers(known->find(item->session().get()), item, parts_.counts(call, item->message));
    parts_.bag().erase(item);
    if (news) heard(call);
  }

  void failed(const Peer& peer) noexcept {
    std::vector<CallId> changed;
    calls_.for_each([&](CallId id, GroupCall& call) {
      bool any = false;
      for (GroupMember& one : call.members)
        if (one.session && Peer::of(parts_.host(), *one.session) == peer)
          any = call.fails(&one, Errc::call_failed) || any;
      try {
        if (any) changed.push_back(id);
      } catch (const std::bad_alloc&) {  // that one ends by its bound
      }
    });
    for (const CallId call : changed) heard(call);
  }

  void heard(CallId call) noexcept {
    const GroupCall* const known = calls_.find(call);
    if (known == nullptr || known->decided) return;
    if (known->tally.answered != 0 || known->tally.failed != 0)
      parts_.events().raise(*heard_, Raise::synchronous, call, known->tally);
  }

  // ---- how a call ends ----

  void decided(CallId call, Errc outcome) noexcept {
    GroupCall* const known = calls_.find(call);
    if (known == nullptr || std::exchange(known->decided, true)) return;
    if (outcome != Errc::ok) return parts_.end_call(call, outcome);
    if (may_end_ == nullptr || (*may_end_)(call)) conclude(call);
  }

  /// In call style the first reply ends the call. In push style all go up, each through its own session.
  void conclude(CallId call) noexcept {
    GroupCall* const known = calls_.find(call);
    if (known == nullptr || std::exchange(known->concluded, true)) return;
    if (parts_.style() == CallStyle::call) return parts_.end_call(call, Errc::ok, std::move(known->first->message));
    std::unique_ptr<GroupCall> done = calls_.take(call);
    parts_.end_call(call, Errc::ok);
    for (const GroupMember& one : done->members) {
      if (!one.reply) continue;
      const ItemRef item = parts_.bag().new_item(one.session, Direction::up, std::move(one.reply->message));
      if (item) parts_.mark_reply(item, call);
      parts_.bag().insert(item);
    }
    calls_.give(std::move(done));
  }

  void ended(CallId call) noexcept {
    if (std::unique_ptr<GroupCall> gone = calls_.take(call)) calls_.give(std::move(gone));
  }

  MicroParts parts_;
  Attribute<CallType> type_;
  Attribute<CallId> call_;
  const Raisable<CallId, const Session*>* const begun_;
  const Raisable<CallId, Tally>* const heard_;
  const std::function<bool(const Peer&)>* has_failed_ = nullptr;
  const std::function<bool(CallId)>* may_end_ = nullptr;
  GroupCalls calls_;
};

}  // namespace

MicroKind grpc_kind() {
  MicroKind kind;
  kind.name = "GRPC";
  kind.summary = "requests to a server or to a group, and their replies";
  kind.exports = {kCallBegun.name, kMemberHeard.name};
  kind.imports = {kMessagePushedToCp.name, kMessagePoppedToCp.name, kMessageReadyToBeSent.name, kCallEnded.name,
                  kCallDecided.name};
  kind.may_import = {kSuspectHostDead.name, kServerSilent.name, kHasFailed.name, kCallMayEnd.name, kMayEnd.name};
  kind.needs = {{"SYNC", "ASYNC"}, {"ONE_ACCEPT", "ALL_ACCEPT", "MAJORITY"}};
  kind.verifies = true;
  kind.make = make_micro<GroupRpc>;
  return kind;
}

}  // namespace lrpc::netrpc::composite
