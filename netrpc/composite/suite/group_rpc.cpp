// GRPC: requests to one server or to all members of a group, and their replies; SYNC and ASYNC: how they are called
// (§4.2).
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/group_session.h"
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

namespace {

struct Member {
  SessionRef session;  ///< Null: there was none when the call began.
  HostAddress host{};
  ItemRef reply{};         ///< Null: it has not answered.
  Errc failed = Errc::ok;  ///< Why it will not answer, as far as is known.
};

/// A call that has not ended. Its memory is used again.
struct GroupCall {
  std::vector<Member> members;
  Tally tally;
  ItemRef first;  ///< The first reply.
  bool to_group = false;
  bool decided = false;  ///< What it waits for is on its way upwards, or it has failed.

  /// False: that was known.
  bool fails(Member& member, Errc why) noexcept {
    if (member.reply || member.failed != Errc::ok) return false;
    member.failed = why;
    ++tally.failed;
    return true;
  }
  bool answers(Member& member, const ItemRef& reply) noexcept {
    if (member.reply) return false;
    if (member.failed != Errc::ok) --tally.failed;
    ++tally.answered;
    member.reply = reply;
    if (!first) first = reply;
    return true;
  }
};

class GroupRpc final : public MicroProtocol {
 public:
  explicit GroupRpc(MicroParts& parts)
      : parts_(parts),
        type_(parts.attribute<CallType>(kCallType, Visibility::of_all, InHeader::yes)),
        call_(parts.attribute<CallId>("call", Visibility::of_owner, InHeader::yes)),
        begun_(parts.exported(kCallBegun)),
        heard_(parts.exported(kMemberHeard)) {
    parts_.handle(kMessagePushedToCp, [this](const Entering& entering) { pushed(entering); });
    parts_.handle(kMessagePoppedToCp,
                  [this](const Entering& entering) { parts_.bag().insert(parts_.item_of(entering)); });
    parts_.handle(
        kMessageInsertedIntoBag, [this](const ItemRef& item) { parts_.mark_request(item); },
        [this](const ItemRef& item) { return came(*item, CallType::request); });
    parts_.handle(
        kMessageReadyToBeSent, [this](const ItemRef& item) { replied(item); },
        [this](const ItemRef& item) { return came(*item, CallType::reply); });
    parts_.handle(kCallDecided, [this](CallId call, Errc outcome) { decided(call, outcome); });
    parts_.handle(kCallEnded, [this](CallId call) { ended(call); });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) { failed(peer); });
    parts_.collate([this](CallId call, Transaction& user, const Message& reply) { collate(call, user, reply); });
    parts_.later([this](MicroParts& all) { has_failed_ = all.procedure(kHasFailed); });
  }

 private:
  struct CallKey {
    CallId id = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0, id); }
    friend bool operator==(CallKey, CallKey) = default;
  };

  [[nodiscard]] GroupCall* find(CallId call) noexcept {
    std::unique_ptr<GroupCall>* const known = calls_.resolve({call});
    return known != nullptr ? known->get() : nullptr;
  }

  // ---- who calls ----

  /// Whoever is to verify what comes from above is also where one request becomes several.
  void pushed(const Entering& entering) noexcept {
    if (MicroParts::call_of(entering) != 0) return request(entering);
    const ItemRef reply = parts_.item_of(entering);
    if (!reply || !reply->answers()) return;  // refused
    type_.set(*reply, CallType::reply);
    call_.set(*reply, call_(*reply->answers()));
    parts_.bag().insert(reply);
  }

  void request(const Entering& entering) noexcept {
    const CallId call = MicroParts::call_of(entering);
    GroupSession* const group = MicroParts::group_of(entering);
    const std::span<const SessionRef> members = group != nullptr ? group->members() : std::span(&entering.session, 1);
    if (!begin(call, group, members)) return MicroParts::tell(entering, Errc::limit_reached);
    parts_.events().raise(*begun_, Raise::synchronous, call, entering.session.get());
    std::size_t sent = 0;
    Errc why = Errc::host_unreachable;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Errc outcome = members[i] ? send(entering, members[i], call) : Errc::host_unreachable;
      if (outcome == Errc::ok) {
        ++sent;
        continue;
      }
      why = outcome;
      if (GroupCall* const known = find(call)) (void)known->fails(known->members[i], outcome);
    }
    MicroParts::tell(entering, sent != 0 ? Errc::ok : why);
    if (sent != 0 && sent < members.size()) heard(call);
  }

  [[nodiscard]] Errc send(const Entering& entering, const SessionRef& member, CallId call) noexcept {
    const ItemRef item = parts_.item_for(entering, member);
    if (!item) return Errc::limit_reached;
    type_.set(*item, CallType::request);
    call_.set(*item, call);
    parts_.bag().insert(item);
    return item->outcome();
  }

  /// Where somebody else is left, nobody waits for those that are known to have failed. They are asked nevertheless.
  [[nodiscard]] bool begin(CallId call, const GroupSession* group, std::span<const SessionRef> members) noexcept {
    try {
      std::unique_ptr<GroupCall> made;
      if (spare_.empty()) {
        spare_.reserve(calls_.size() + 1);
        made = std::make_unique<GroupCall>();
      } else {
        made = std::move(spare_.back());
        spare_.pop_back();
      }
      made->members.reserve(members.size());
      for (const SessionRef& member : members) {
        const std::size_t at = made->members.size();
        made->members.push_back({member, group != nullptr ? group->host(at) : member->peer()});
      }
      made->to_group = group != nullptr;
      made->tally = {members.size(), 0, 0};
      for (Member& member : made->members)
        if (has_failed(member)) (void)made->fails(member, Errc::call_failed);
      if (made->tally.failed == members.size()) {
        for (Member& member : made->members) member.failed = Errc::ok;
        made->tally.failed = 0;
      }
      calls_.bind({call}, std::move(made));
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  [[nodiscard]] bool has_failed(const Member& member) const {
    return has_failed_ != nullptr && member.session && (*has_failed_)(Peer::of(parts_.host(), *member.session));
  }

  void heard(CallId call) noexcept {
    const GroupCall* const known = find(call);
    if (known != nullptr && !known->decided) parts_.events().raise(*heard_, Raise::synchronous, call, known->tally);
  }

  // ---- what comes from below ----

  [[nodiscard]] bool came(const Item& item, CallType type) const noexcept {
    return item.direction == Direction::up && item.has_entered() && type_(item) == type;
  }

  /// Everybody else lets the reply go upwards. It waits here until enough have come, not in the bag, where others that
  /// come after it might have to wait for it.
  void replied(const ItemRef& item) noexcept {
    if (!item->in_bag()) return;
    const CallId call = call_(*item);
    GroupCall* const known = find(call);
    bool news = false;
    if (known != nullptr && !known->decided) {
      const auto member = std::ranges::find(known->members, item->session(), &Member::session);
      news = member != known->members.end() && known->answers(*member, item);
    }
    parts_.bag().erase(item);
    if (news) heard(call);
  }

  void failed(const Peer& peer) noexcept {
    std::vector<CallId> of_it;
    calls_.for_each([&](const CallKey& key, const std::unique_ptr<GroupCall>& call) {
      bool any = false;
      for (Member& member : call->members)
        if (member.session && Peer::of(parts_.host(), *member.session) == peer)
          any = call->fails(member, Errc::call_failed) || any;
      try {
        if (any) of_it.push_back(key.id);
      } catch (const std::bad_alloc&) {  // that one ends by its bound
      }
    });
    for (const CallId call : of_it) heard(call);
  }

  /// In call style the first reply ends the call. In push style all go up, each through its own session.
  void decided(CallId call, Errc outcome) noexcept {
    GroupCall* known = find(call);
    if (known == nullptr || std::exchange(known->decided, true)) return;
    if (outcome != Errc::ok) return parts_.end_call(call, outcome, {});
    if (parts_.style() == CallStyle::call) return parts_.end_call(call, Errc::ok, std::move(known->first->message));
    for (std::size_t i = 0; known != nullptr && i < known->members.size(); known = find(call), ++i)
      go_up(call, std::exchange(known->members[i].reply, {}));
  }

  void go_up(CallId call, const ItemRef& reply) noexcept {
    if (!reply) return;
    const ItemRef item = parts_.bag().new_item(reply->session(), Direction::up, std::move(reply->message));
    if (!item) return;
    parts_.mark_reply(item, call);
    parts_.bag().insert(item);
  }

  void ended(CallId call) noexcept {
    std::unique_ptr<GroupCall>* const known = calls_.resolve({call});
    if (known == nullptr) return;
    std::unique_ptr<GroupCall> gone = std::move(*known);
    calls_.unbind({call});
    const bool to_go = gone->decided && parts_.style() == CallStyle::push;  // it has ended with the first one
    for (Member& member : gone->members)
      if (to_go) go_up(call, std::exchange(member.reply, {}));
    gone->members.clear();
    gone->first = {};
    gone->decided = false;
    if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(gone));
  }

  /// `reply`: the first one's message, if it has ended the call.
  void collate(CallId call, Transaction& user, const Message& reply) noexcept {
    GroupCall* const known = find(call);
    if (known == nullptr || !known->to_group) return;
    for (const Member& member : known->members) {
      if (!member.reply && member.failed == Errc::ok) continue;
      Message said;
      if (member.reply)
        said = known->decided && member.reply == known->first ? reply.share() : member.reply->message.share();
      user.collated(member.host, member.reply ? Errc::ok : member.failed, std::move(said));
    }
  }

  MicroParts parts_;
  Attribute<CallType> type_;
  Attribute<CallId> call_;
  const Raisable<CallId, const Session*>* const begun_;
  const Raisable<CallId, Tally>* const heard_;
  const std::function<bool(const Peer&)>* has_failed_ = nullptr;
  Map<CallKey, std::unique_ptr<GroupCall>> calls_;
  std::vector<std::unique_ptr<GroupCall>> spare_;
};

/// What the protocols above do with the composite protocol.
class Style final : public MicroProtocol {
 public:
  explicit Style(MicroParts& /*parts*/) noexcept {}
};

MicroKind style_kind(std::string name, std::string summary, CallStyle style, std::string_view other) {
  MicroKind kind;
  kind.name = std::move(name);
  kind.summary = std::move(summary);
  kind.style = style;
  kind.needs = {{"GRPC"}};
  kind.excludes = {other};
  kind.make = make_micro<Style>;
  return kind;
}

}  // namespace

MicroKind grpc_kind() {
  MicroKind kind;
  kind.name = "GRPC";
  kind.summary = "requests to a server or to a group, and their replies";
  kind.exports = {kCallBegun.name, kMemberHeard.name};
  kind.imports = {kMessagePushedToCp.name,    kMessagePoppedToCp.name, kMessageInsertedIntoBag.name,
                  kMessageReadyToBeSent.name, kCallEnded.name,         kCallDecided.name};
  kind.may_import = {kSuspectHostDead.name, kHasFailed.name};
  kind.needs = {{"SYNC", "ASYNC"}, {"ONE_ACCEPT", "ALL_ACCEPT", "MAJORITY"}};
  kind.verifies = true;
  kind.make = make_micro<GroupRpc>;
  return kind;
}

MicroKind sync_kind() { return style_kind("SYNC", "a call, which ends with a reply", CallStyle::call, "ASYNC"); }
MicroKind async_kind() {
  return style_kind("ASYNC", "a push, whose replies come up as messages", CallStyle::push, "SYNC");
}

}  // namespace lrpc::netrpc::composite
