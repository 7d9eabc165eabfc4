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

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/control.h"
#include "lrpc/netrpc/message.h"
#include "lrpc/netrpc/participant_set.h"
#include "lrpc/netrpc/ref.h"

namespace lrpc::netrpc {

class Host;
class Protocol;
class Session;

using SessionRef = Ref<Session>;

/// One request and its reply, at the client. The caller owns it and keeps it alive until completed() has been called or
/// cancel() has returned. Protocols link it into their queues, so waiting costs no allocation.
class Transaction {
 public:
  Transaction() = default;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  virtual ~Transaction() = default;

  /// Called once, under the monitor; may start the next call. Errc::ok: `reply` is the answer. version_mismatch
  /// (SUN_SELECT): `reply` is the server's unchecked answer; if well-formed, u32 lowest and u32 highest version in
  /// network byte order. For the other outcomes it is empty:
  /// - call_failed: the peer is gone or has rebooted, or its netd refused. Executed at most once; through a
  ///   REQUEST_REPLY, any number of times.
  /// - call_aborted: the timeout passed. Executed as for call_failed.
  /// - call_lost: a link's MTU has shrunk: the reply, or a request that had to be sent again, is too long for it. Or a
  ///   server of PAIRED, or of REQUEST_REPLY over TCP, has no room. Executed as for call_failed.
  /// - host_unreachable, message_too_long, limit_reached: not executed.
  /// - The refusals of the selection layer: bad_procedure; for SUN_SELECT see docs/SUNRPC.md.
  virtual void completed(Errc outcome, Message reply) noexcept = 0;
  /// Of a call to a group: the answer of one member, or why it failed. Called at most once for each member, in any
  /// order, just before completed(); not for members that have neither answered nor failed by then. Must not cancel the
  /// call.
  virtual void collated(HostAddress member, Errc outcome, Message reply) noexcept;
  /// Of a call to a group: whether a member's reply counts as an answer. If not, the member has failed; its reply is
  /// collated all the same. Called once for each reply, under the monitor; must not block. By default all replies
  /// count.
  [[nodiscard]] virtual bool counts(const Message& reply) noexcept;

  // For the protocol that holds the transaction, while it waits its turn.
  Transaction* next_waiting = nullptr;
  Message waiting_request;
  Time deadline{};  ///< In the host's time; Time::max(): none.
};

/// A session: an instance of a protocol, the local end of a connection. It implements the operations of its service;
/// the others fail with not_supported.
///
/// `pop`, which carries a message upwards, is not virtual: its one caller is the demux of the session's own protocol,
/// which passes the header it has decoded. So each session type declares its own.
class Session {
 public:
  /// `high` gets the messages that go upwards. The session belongs to `protocol`; both protocols outlive it.
  Session(Protocol& protocol, Protocol& high, ParticipantSet participants) noexcept
      : protocol_(protocol), high_(high), participants_(std::move(participants)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Carries a message downwards that needs no answer. Errors: message_too_long, limit_reached, host_unreachable,
  /// system_error. Errc::ok means sent, not received.
  [[nodiscard]] virtual Errc push(Message message) noexcept;
  /// Carries a request downwards; `transaction` is completed with its reply, possibly before this returns. `timeout`
  /// counts from now. kNoLimit: none, but the call still ends when the protocol considers the peer gone. Zero or less:
  /// the call ends with call_aborted, and nothing is sent.
  virtual void call(Message request, Transaction& transaction, Duration timeout) noexcept;
  /// Abandons a call: completed() will not be called. The peer may still execute it. No effect if `transaction` is not
  /// under way here.
  virtual void cancel(Transaction& transaction) noexcept;
  /// At the server: answers, once, the request that came with this session in Protocol::call_demux().
  virtual void reply(Message message) noexcept;
  /// See control.h. A session passes requests that it does not know to the layer below; by default, to its protocol.
  [[nodiscard]] virtual Errc control(control::Request& request) noexcept;

  [[nodiscard]] Protocol& protocol() const noexcept { return protocol_; }
  [[nodiscard]] Protocol& high() const noexcept { return high_; }
  [[nodiscard]] const ParticipantSet& participants() const noexcept { return participants_; }
  [[nodiscard]] HostAddress peer() const noexcept { return participants_.remote.host; }

  /// The session of the layer above, if all messages that arrive here go to the same one: that layer's demux then need
  /// not search. The layer above sets it; not owned.
  Session* above = nullptr;

 protected:
  virtual ~Session() = default;
  /// Called when the last SessionRef is dropped: deletes the session. A protocol with a cache holds a SessionRef of its
  /// own.
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

/// A protocol object. The graph constructs lower protocols first, and gives each references to those below it.
class Protocol {
 public:
  /// `name`: the instance's in the graph, for traces and errors.
  Protocol(Host& host, std::string name) : host_(host), name_(std::move(name)) {}
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  // ---- sessions: called by protocols above ----

  /// A session to the participants, made or taken from the cache, for the protocol `high`. Never blocks. Errors:
  /// host_unreachable, limit_reached, invalid_argument (a participant is missing), not_supported, system_error.
  virtual Result<SessionRef> open(Protocol& high, const ParticipantSet& participants);
  /// From now on messages for participants.protocol (and the other fields that are set) go to `high`. When a new peer's
  /// first message arrives, this protocol makes a session and calls high.open_done(). Errors: name_taken, system_error,
  /// invalid_argument.
  virtual Status open_enable(Protocol& high, const ParticipantSet& participants);
  /// Reverses open_enable(). Existing sessions stay open.
  virtual void open_disable(Protocol& high, const ParticipantSet& participants) noexcept;

  // ---- called by protocols below ----

  /// The layer below has created a session for this protocol, for a peer's first message. This protocol may keep a
  /// reference. An error makes the layer below drop the session and the message.
  [[nodiscard]] virtual Errc open_done(Session& lower, const ParticipantSet& participants) noexcept;
  /// Takes a message that has arrived through `lower`: finds or makes its session, and pops it there. Faults of the
  /// message are counted, not returned, because no caller could handle them.
  virtual void demux(Session& lower, Message message) noexcept;
  /// Takes a request that has arrived through `lower`. Answer it with lower.reply(), now or later; keep a SessionRef
  /// until then.
  virtual void call_demux(Session& lower, Message request) noexcept;

  // ---- both ----

  [[nodiscard]] virtual Errc control(control::Request& request) noexcept;

  [[nodiscard]] Host& host() const noexcept { return host_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 protected:
  /// For control(): answers a Statistics request with `counted` and these numbers. False: it is another request.
  [[nodiscard]] bool told_statistics(control::Request& request, std::size_t sessions,
                                     std::size_t state = 0) const noexcept {
    auto* const asked = std::get_if<control::Statistics>(&request);
    if (asked == nullptr) return false;
    *asked = counted;
    asked->sessions = sessions;
    asked->state = state;
    return true;
  }
  /// The protocol's counters, which answer control(Statistics).
  control::Statistics counted;

 private:
  Host& host_;
  const std::string name_;
};

/// For open() of protocols that do not tell the ports of a host apart: invalid_argument if a port is given.
[[nodiscard]] Status refuse_port(const Protocol& protocol, const ParticipantSet& participants);
/// Why `protocol` makes no further one of `what`, as "sessions": limit_reached. Its host is short of memory, or else it
/// has as many as it may have.
[[nodiscard]] Error no_room(const Protocol& protocol, std::string_view what);

}  // namespace lrpc::netrpc
