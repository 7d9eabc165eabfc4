// What GRPC knows of the calls that have not ended.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/group_session.h"
#include "netrpc/composite/suite/suite.h"

namespace lrpc::netrpc::composite {

struct GroupMember {
  SessionRef session;  ///< Null: there was none when the call began.
  HostAddress host{};
  ItemRef reply{};         ///< Null: it has not answered, or the answer has gone up.
  Errc failed = Errc::ok;  ///< Why it will not answer, as far as is known.
};

struct GroupCall {
  std::vector<GroupMember> members{};
  Tally tally{};
  ItemRef first{};  ///< The first reply.
  bool to_group = false;
  bool decided = false;    ///< Enough is known: what comes now does not count.
  bool concluded = false;  ///< Its replies have gone up, or are going up.

  [[nodiscard]] GroupMember* find(const Session* session) noexcept {
    const auto of_it = [session](const GroupMember& one) { return one.session.get() == session; };
    const auto member = std::ranges::find_if(members, of_it);
    return member != members.end() && session != nullptr ? &*member : nullptr;
  }
  /// Records that the member will not answer. False: `member` is null, or that is not new.
  bool fails(GroupMember* member, Errc why) noexcept {
    if (member == nullptr || member->reply || member->failed != Errc::ok) return false;
    member->failed = why;
    ++tally.failed;
    return true;
  }
  /// At least one member has failed, and all that have did so because a message was too long for the path between the
  /// hosts.
  [[nodiscard]] bool all_lost() const noexcept {
    const auto other = [](const GroupMember& one) { return one.failed != Errc::ok && one.failed != Errc::call_lost; };
    return tally.failed != 0 && std::ranges::none_of(members, other);
  }
  /// Records a member's reply. One that does not count is kept, too, to be collated. False: `member` is null, or has
  /// replied before.
  bool answers(GroupMember* member, const ItemRef& reply, bool counts) noexcept {
    if (member == nullptr || member->reply) return false;
    if (!counts) {
      (void)fails(member, Errc::call_failed);
    } else {
      if (std::exchange(member->failed, Errc::ok) != Errc::ok) --tally.failed;
      ++tally.answered;
      if (!first) first = reply;
    }
    member->reply = reply;
    return true;
  }
};

/// Reports each member's reply or failure to `user`. `reply`: the first reply, if that has ended the call.
inline void collate(const GroupCall& call, Transaction& user, const Message& reply) noexcept {
  for (const GroupMember& one : call.members) {
    if (!one.reply && one.failed == Errc::ok) continue;
    if (!one.reply) {
      user.collated(one.host, one.failed, {});
      continue;
    }
    const Message& said = call.concluded && one.reply == call.first ? reply : one.reply->message;
    Message copy = said.share();
    const bool lost = said.allocated() && !copy.allocated();
    user.collated(one.host, lost ? Errc::limit_reached : Errc::ok, std::move(copy));
  }
}

/// Calls by their names. The memory of ended calls is used again. Under the monitor.
class GroupCalls {
 public:
  /// `group` null: `sessions` is one session to a server. Returns null if there is no memory. Valid until the call is
  /// taken.
  [[nodiscard]] GroupCall* begin(CallId call, const GroupSession* group,
                                 std::span<const SessionRef> sessions) noexcept {
    try {
      spare_.reserve(calls_.size() + 1);
      if (spare_.empty()) spare_.push_back(std::make_unique<GroupCall>());
      std::vector<GroupMember>& members = spare_.back()->members;
      members.reserve(sessions.size());
      for (const SessionRef& one : sessions)
        members.push_back({one, group != nullptr ? group->host(members.size()) : one->peer()});
      GroupCall& made = *calls_.bind(call, std::move(spare_.back()));
      spare_.pop_back();
      made.tally = {sessions.size(), 0, 0};
      made.to_group = group != nullptr;
      return &made;
    } catch (const std::bad_alloc&) {
      if (!spare_.empty()) spare_.back() != nullptr ? spare_.back()->members.clear() : spare_.pop_back();
      return nullptr;
    }
  }
  [[nodiscard]] GroupCall* find(CallId call) noexcept {
    std::unique_ptr<GroupCall>* const known = calls_.resolve(call);
    return known != nullptr ? known->get() : nullptr;
  }
  /// Takes the call out; pass it to give() afterwards. Null: there is none.
  [[nodiscard]] std::unique_ptr<GroupCall> take(CallId call) noexcept {
    std::unique_ptr<GroupCall>* const known = calls_.resolve(call);
    if (known == nullptr) return nullptr;
    std::unique_ptr<GroupCall> taken = std::move(*known);
    calls_.unbind(call);
    return taken;
  }
  void give(std::unique_ptr<GroupCall> call) noexcept {
    std::vector<GroupMember> members = std::move(call->members);
    members.clear();
    *call = {};
    call->members = std::move(members);
    if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(call));
  }
  /// visit(CallId, GroupCall&), which must not begin or take any.
  template <class Visit>
  void for_each(Visit visit) {
    calls_.for_each([&](CallId id, const std::unique_ptr<GroupCall>& call) { visit(id, *call); });
  }

 private:
  Map<CallId, std::unique_ptr<GroupCall>> calls_;
  std::vector<std::unique_ptr<GroupCall>> spare_;
};

}  // namespace lrpc::netrpc::composite
