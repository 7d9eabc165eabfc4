// What becomes of GRPC's calls: who has answered, who has failed, and with what a call ends (§4.2).
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "netrpc/composite/calls.h"
#include "netrpc/composite/suite/group_calls.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

/// The part of GRPC that knows its calls: who has been asked, who has answered or failed, and when a call ends. It
/// raises Call_Begun and Member_Heard, and handles the other micro-protocols' events about calls and their members.
class Collation {
 public:
  explicit Collation(MicroParts& parts)
      : parts_(parts), begun_(parts.exported(kCallBegun)), heard_(parts.exported(kMemberHeard)) {
    parts_.handle(kServerSilent, [this](CallId call, const Session* session) { silent(call, session); });
    parts_.handle(kSuspectHostDead, [this](const Peer& peer) { suspected(peer); });
    parts_.handle(kCallDecided, [this](CallId call, Errc outcome) { decided(call, outcome); });
    parts_.handle(kCallMayEnd, [this](CallId call) { conclude(call); });
    parts_.handle(kCallEnded, [this](CallId call) { ended(call); });
    parts_.calls().collate = [this](CallId call, Transaction& user, const Message& reply) {
      const GroupCall* const known = calls_.find(call);
      if (known != nullptr && known->to_group) collate(*known, user, reply);
    };
    parts_.later([this](MicroParts& all) {
      has_failed_ = all.procedure(kHasFailed);
      may_end_ = all.procedure(kMayEnd);
    });
  }

  /// Begins a call through `session` to the hosts at the other ends of `members`. `group` null: to one server. False:
  /// the call has ended already, or there is no memory.
  [[nodiscard]] bool begin(CallId call, const Session* session, const GroupSession* group,
                           std::span<const SessionRef> members) noexcept {
    if (!parts_.calls().has(call) || !calls_.begin(call, group, members)) return false;
    parts_.events().raise(*begun_, Raise::synchronous, call, session);
    if (parts_.calls().has(call)) return true;
    ended(call);
    return false;
  }
  /// The request to the member at `place` could not be sent.
  void not_asked(CallId call, std::size_t place, Errc why) noexcept {
    if (GroupCall* const known = calls_.find(call)) known->fails(&known->members[place], why);
  }
  /// All requests of the call have been sent, except those of not_asked().
  void asked(CallId call) noexcept {
    if (GroupCall* const known = calls_.find(call)) leave_out_failed(*known);
    heard(call);
  }
  /// Records a reply. True: it is new, call heard() next.
  [[nodiscard]] bool takes(CallId call, const ItemRef& reply) noexcept {
    GroupCall* const known = calls_.find(call);
    return known != nullptr && !known->decided &&
           known->answers(known->find(reply->session().get()), reply, parts_.calls().counts(call, reply->message));
  }
  /// Records that the member at the other end of `session` will not answer. True: that is new, call heard() next.
  [[nodiscard]] bool fails(CallId call, const Session* session, Errc why) noexcept {
    GroupCall* const known = calls_.find(call);
    return known != nullptr && !known->decided && known->fails(known->find(session), why);
  }
  /// Raises Member_Heard, so that ONE_ACCEPT, ALL_ACCEPT or MAJORITY can decide.
  void heard(CallId call) noexcept {
    const GroupCall* const known = calls_.find(call);
    if (known == nullptr || known->decided) return;
    if (known->tally.answered != 0 || known->tally.failed != 0)
      parts_.events().raise(*heard_, Raise::synchronous, call, known->tally);
  }

 private:
  /// The call does not wait for members that are known to have failed, if others are left. All have been asked.
  void leave_out_failed(GroupCall& call) const noexcept {
    const auto left = [this](const GroupMember& one) {
      return one.failed == Errc::ok && !(*has_failed_)(Peer::of(parts_.host(), *one.session));
    };
    if (has_failed_ == nullptr || std::ranges::none_of(call.members, left)) return;
    for (GroupMember& member : call.members)
      if (member.failed == Errc::ok && !left(member)) call.fails(&member, Errc::call_failed);
  }
  void silent(CallId call, const Session* session) noexcept {
    if (fails(call, session, Errc::call_failed)) heard(call);
  }
  void suspected(const Peer& peer) noexcept {
    std::vector<CallId> changed;
    calls_.for_each([&](CallId id, GroupCall& call) {
      bool any = false;
      for (GroupMember& one : call.members)
        if (one.session && Peer::of(parts_.host(), *one.session) == peer)
          any = call.fails(&one, Errc::call_failed) || any;
      if (any) attempt([&] { changed.push_back(id); });  // else the call ends by its bound
    });
    for (const CallId call : changed) heard(call);
  }
  void decided(CallId call, Errc outcome) noexcept {
    GroupCall* const known = calls_.find(call);
    if (known == nullptr || std::exchange(known->decided, true)) return;
    if (outcome != Errc::ok) return parts_.calls().end(call, known->all_lost() ? Errc::call_lost : outcome);
    if (may_end_ == nullptr || (*may_end_)(call)) conclude(call);
  }
  /// In call style the first reply ends the call. In push style all replies go up, each through its own session.
  /// Without memory for one of them none goes up, and the push fails.
  void conclude(CallId call) noexcept {
    GroupCall* const known = calls_.find(call);
    if (known == nullptr || std::exchange(known->concluded, true)) return;
    if (parts_.style() == CallStyle::call) return parts_.calls().end(call, Errc::ok, std::move(known->first->message));
    for (GroupMember& one : known->members) {
      if (!one.reply) continue;
      one.reply = parts_.bag().new_item(one.session, Direction::up, std::move(one.reply->message));
      if (!one.reply) return parts_.calls().end(call, Errc::call_lost);
      parts_.mark_reply(one.reply, call);
    }
    if (!parts_.calls().settle(call)) return;
    std::unique_ptr<GroupCall> done = calls_.take(call);
    for (const GroupMember& one : done->members) parts_.bag().insert(one.reply);
    calls_.give(std::move(done));
    parts_.calls().settled(call);  // last: only then may the next call's replies go up
  }
  void ended(CallId call) noexcept {
    if (std::unique_ptr<GroupCall> gone = calls_.take(call)) calls_.give(std::move(gone));
  }

  MicroParts parts_;
  const Raisable<CallId, const Session*>* const begun_;
  const Raisable<CallId, Tally>* const heard_;
  const std::function<bool(const Peer&)>* has_failed_ = nullptr;
  const std::function<bool(CallId)>* may_end_ = nullptr;
  GroupCalls calls_;
};

}  // namespace lrpc::netrpc::composite
