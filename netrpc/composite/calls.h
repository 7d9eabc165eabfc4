// Call style: the calls that go through a composite protocol (Bhatti and Schlichting §4.1).
#pragma once

#include <functional>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/micro_protocol.h"

namespace lrpc::netrpc::composite {

class Framework;

/// What the protocol above answers one request through: by reply(), or in push style by the first push(). Lives as long
/// as somebody refers to it.
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
  ItemRef request_;  ///< Null: it has been answered. A push for which there is no room may be tried again.
  const SessionRef lower_;
};

/// The calls of one composite protocol that have not ended. Under the monitor.
class Calls {
 public:
  /// `first`: of the names, which a peer is not to guess.
  Calls(Host& host, Events& events, CallId first) noexcept;

  /// Begins one; `user` null: of a message that was pushed. `timeout`: after which it ends with call_aborted; kNoLimit:
  /// never. 0: there is no memory.
  [[nodiscard]] CallId begin(Session& session, Transaction* user, Duration timeout) noexcept;
  /// It ends with call_aborted `limit` from now, if not before. False: there is no memory for that.
  [[nodiscard]] bool bound(CallId call, Duration limit) noexcept;
  [[nodiscard]] bool has(CallId call) noexcept { return calls_.resolve(call) != nullptr; }
  /// No effect if it has ended. The user is told, and may begin the next; who has pushed is told of a failure alone.
  void end(CallId call, Errc outcome, Message reply) noexcept;
  /// Takes it out, of who has pushed: nothing else ends it while its replies go up. False: it has ended. settled(),
  /// when they have, lets others hear that it has ended.
  [[nodiscard]] bool settle(CallId call) noexcept { return bool(take(call).session); }
  void settled(CallId call) noexcept { events_.raise(ended_, Raise::asynchronous, call); }
  /// Nobody is told.
  void drop(CallId call) noexcept;
  void cancel(Transaction& user) noexcept;
  /// As Transaction::counts().
  [[nodiscard]] bool counts(CallId call, const Message& reply) noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return calls_.size(); }

  MicroParts::Collate collate;  ///< Null: nobody tells more than the reply.

 private:
  struct Call {
    Transaction* user = nullptr;
    SessionRef session;
    Events::TimerId timer = 0;
    Time due = Time::max();
  };
  /// The call, which has ended. Null session: there was none.
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
