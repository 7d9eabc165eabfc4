// Call style: the calls that go through a composite protocol (Bhatti and Schlichting §4.1).
#pragma once

#include <functional>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/bag.h"

namespace lrpc::netrpc::composite {

class Framework;

/// The session by which the protocol above answers one request: by reply(), or in push style by the first push(). Lives
/// as long as somebody refers to it.
class RequestSession final : public Session {
 public:
  RequestSession(Framework& framework, ItemRef request) noexcept;
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc push(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  void unreferenced() noexcept override;

 private:
  Framework& framework_;
  ItemRef request_;  ///< Null: it has been answered. After a push with limit_reached it stays: push again.
  const SessionRef lower_;
};

/// The calls of one composite protocol that have not ended. Under the monitor.
class Calls {
 public:
  /// `first`: the names of calls count from it. Random, so that a peer cannot guess them.
  Calls(Host& host, Events& events, CallId first) noexcept;

  /// Begins a call; `user` null: for a message that was pushed. After `timeout` it ends with call_aborted; kNoLimit:
  /// never. Returns 0 if there is no memory.
  [[nodiscard]] CallId begin(Session& session, Transaction* user, Duration timeout) noexcept;
  /// The call ends with call_aborted after `limit` at the latest. False: there is no memory for that.
  [[nodiscard]] bool bound(CallId call, Duration limit) noexcept;
  /// It has not ended.
  [[nodiscard]] bool has(CallId call) noexcept { return calls_.resolve(call) != nullptr; }
  /// No effect if the call has ended. Completes `user`, which may begin the next call meanwhile; if the call was a
  /// push, tells the protocol above only a failure (control::PushFailed).
  void end(CallId call, Errc outcome, Message reply = {}) noexcept;
  /// Takes out the call of a pushed message, so that nothing else ends it while its replies go up. False: it has ended.
  /// Call settled() when they have gone up: it raises Call_Ended.
  [[nodiscard]] bool settle(CallId call) noexcept { return bool(take(call).session); }
  void settled(CallId call) noexcept { events_.raise(ended_, Raise::asynchronous, call); }
  /// Ends the call and raises Call_Ended, but does not tell the caller.
  void drop(CallId call) noexcept {
    if (take(call).session) events_.raise(ended_, Raise::asynchronous, call);
  }
  void cancel(Transaction& user) noexcept {
    if (const CallId* const call = by_user_.resolve(&user)) drop(CallId(*call));
  }
  /// Whether a member's reply counts for the call, as Transaction::counts().
  [[nodiscard]] bool counts(CallId call, const Message& reply) noexcept {
    const Call* const known = calls_.resolve(call);
    return known == nullptr || known->user == nullptr || known->user->counts(reply);
  }
  [[nodiscard]] std::size_t count() const noexcept { return calls_.size(); }

  /// Reports the answers of a group's members to the caller, just before the call ends (Transaction::collated()). Null:
  /// the caller gets the reply only.
  std::function<void(CallId call, Transaction& user, const Message& reply)> collate;

 private:
  struct Call {
    Transaction* user = nullptr;
    SessionRef session;
    Events::TimerId timer = 0;
    Time due = Time::max();
  };
  /// Takes the call out. Null session: there was none.
  [[nodiscard]] Call take(CallId call) noexcept;

  Host& host_;
  Events& events_;
  const Raisable<CallId>& ended_;
  const Raisable<CallId>& timed_out_;
  Map<CallId, Call> calls_;
  Map<const Transaction*, CallId> by_user_;
  CallId last_;
};

}  // namespace lrpc::netrpc::composite
