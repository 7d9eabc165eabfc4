// The uniform protocol interface (RPC in the x-Kernel §2; The x-Kernel §II): protocol objects create sessions and
// demultiplex, session objects interpret messages. Every protocol of a graph has this shape, so any of them can stand
// on any other that gives the same service.
//
// Threads: a graph is a monitor (Host::monitor()). Every operation here is called by the one thread that is inside,
// which shepherds a message through as many layers as it takes by procedure calls, and leaves the monitor only to
// block. Ownership: messages move; a session lives as long as somebody holds a SessionRef to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "lrpc/netrpc/control.h"
#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/participant_set.h"
#include "lrpc/netrpc/ref.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

class Host;
class Protocol;
class Session;

using SessionRef = Ref<Session>;

/// One request and its reply, seen by who asks. Owned by the caller, who keeps it alive until completed() has been
/// called or cancel() has returned; so that waiting costs no allocation, protocols link it into their queues.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  /// Called once, under the monitor. Errc::ok: `reply` is the answer. version_mismatch of SUN_SELECT: what its server
  /// has said of the versions, hostile; at best u32 lowest, u32 highest in network order. Otherwise it is empty:
  /// call_failed (executed once or not at all, through a REQUEST_REPLY any number of times: the peer is gone or has
  /// rebooted, or its netd refused), call_aborted (the timeout passed; else the same), host_unreachable,
  /// message_too_long, limit_reached (not executed), and what a selection layer is told (bad_procedure; SUN_SELECT's
  /// are in docs/SUNRPC.md). May start the next call.
  virtual void completed(Errc outcome, Message reply) noexcept = 0;
  /// Of a call to a group: what one member has answered, or why it has not. Called for each, in no order, just before
  /// completed(); for no member that has neither answered nor failed by then, and none twice. Must not cancel the call.
  virtual void collated(HostAddress member, Errc outcome, Message reply) noexcept;
  /// Of a call to a group: whether what a member has answered counts as an answer. If not, the member has failed; its
  /// reply is collated all the same. Asked once for each reply, under the monitor. Must not block. By default all
  /// count.
  [[nodiscard]] virtual bool counts(const Message& reply) noexcept;

  // The protocol's that has it now: while it waits its turn.
  Transaction* next_waiting = nullptr;
  Message waiting_request;
  Time deadline{};  ///< In the host's time; Time::max(): none.
};

/// A session: an instance of a protocol, the local end of a connection. What a session is for decides which of the
/// operations it has; the others answer not_supported.
///
/// `pop`, the operation that carries a message upwards, is not virtual: its one caller is the demux of the session's
/// own protocol, which hands over the header it has decoded; so each session type declares its own.
class Session {
 public:
  /// `high`: to whom messages go upwards. The session belongs to `protocol`; both outlive it.
  Session(Protocol& protocol, Protocol& high, ParticipantSet participants) noexcept
      : protocol_(protocol), high_(high), participants_(std::move(participants)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Carries a message downwards: one that needs no answer. Errors: message_too_long, limit_reached, host_unreachable,
  /// system_error; that the message was sent says nothing about its arrival.
  [[nodiscard]] virtual Errc push(Message message) noexcept;
  /// Carries a request downwards; `transaction` is completed with its reply, possibly before this returns. `timeout`:
  /// from now on; kNoLimit: none (but the protocol's own idea of when a peer is gone). A timeout of zero or less is
  /// over: the call ends as call_aborted, and nothing is sent.
  virtual void call(Message request, Transaction& transaction, Duration timeout) noexcept;
  /// Gives a call up: its completed() will not be called any more. The peer may still execute it. No effect on one that
  /// is not outstanding here.
  virtual void cancel(Transaction& transaction) noexcept;
  /// At the server: answers the request that Protocol::call_demux was given with this session; once.
  virtual void reply(Message message) noexcept;
  /// See control.h. Passes on to the layer below what it does not know.
  [[nodiscard]] virtual Errc control(control::Request& request) noexcept;

  [[nodiscard]] Protocol& protocol() const noexcept { return protocol_; }
  [[nodiscard]] Protocol& high() const noexcept { return high_; }
  [[nodiscard]] const ParticipantSet& participants() const noexcept { return participants_; }
  [[nodiscard]] HostAddress peer() const noexcept { return participants_.remote.host; }

  /// The session of the layer above that messages arriving here go to, where that is always the same one: saves its
  /// demux the search. Kept by that layer; not owned.
  Session* above = nullptr;

 protected:
  virtual ~Session() = default;
  /// Nobody refers to the session any more. Deletes it; a protocol that keeps a cache holds a SessionRef of its own
  /// instead.
  virtual void unreferenced() noexcept { delete this; }
  ParticipantSet& mutable_participants() noexcept { return participants_; }

 private:
  friend class Ref<Session>;
  std::uint32_t references_ = 0;
  Protocol& protocol_;
  Protocol& high_;
  ParticipantSet participants_;

 public:
  /// How many SessionRefs there are: 1 means that only its protocol's cache holds it.
  [[nodiscard]] std::uint32_t references() const noexcept { return references_; }
};

/// A protocol object. Constructed by the graph, lower ones first, with references to the protocols it depends on.
class Protocol {
 public:
  /// `name`: the instance's in the graph, for traces and errors.
  Protocol(Host& host, std::string name) : host_(host), name_(std::move(name)) {}
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  // ---- sessions: called by protocols above ----

  /// A session to the participants, made or taken from the cache. `high` is who invokes. Never blocks. Errors:
  /// host_unreachable, limit_reached, invalid_argument (a participant is missing), not_supported, system_error.
  virtual Result<SessionRef> open(Protocol& high, const ParticipantSet& participants);
  /// Messages for participants.protocol (and whatever else is given) shall go to `high`: when the first of a new peer
  /// arrives, a session is made and `high` is told by open_done. Errors: name_taken, system_error, invalid_argument.
  virtual Status open_enable(Protocol& high, const ParticipantSet& participants);
  /// Takes it back. Sessions that exist go on.
  virtual void open_disable(Protocol& high, const ParticipantSet& participants) noexcept;

  // ---- called by protocols below ----

  /// A session has been created passively for this protocol. It may keep a reference; an error makes the layer below
  /// drop the session and the message.
  [[nodiscard]] virtual Errc open_done(Session& lower, const ParticipantSet& participants) noexcept;
  /// A message has arrived through `lower`: finds or makes the session it is for, and pops it there. What is wrong with
  /// it is counted, not returned: there is nobody to tell.
  virtual void demux(Session& lower, Message message) noexcept;
  /// A request has arrived through `lower`: answered with lower.reply(), now or later (keep a SessionRef until then).
  virtual void call_demux(Session& lower, Message request) noexcept;

  // ---- both ----

  [[nodiscard]] virtual Errc control(control::Request& request) noexcept;

  [[nodiscard]] Host& host() const noexcept { return host_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 protected:
  /// For control(): answers Statistics with what has been counted, and this. False: something else is asked.
  [[nodiscard]] bool told_statistics(control::Request& request, std::size_t sessions,
                                     std::size_t state = 0) const noexcept {
    auto* const asked = std::get_if<control::Statistics>(&request);
    if (asked == nullptr) return false;
    *asked = counted;
    asked->sessions = sessions;
    asked->state = state;
    return true;
  }
  /// The answer to control(Statistics), and where a protocol counts.
  control::Statistics counted;

 private:
  Host& host_;
  const std::string name_;
};

/// For open() of protocols that tell hosts apart, and not the ports of one: invalid_argument where one is given.
[[nodiscard]] Status refuse_port(const Protocol& protocol, const ParticipantSet& participants);

}  // namespace lrpc::netrpc
