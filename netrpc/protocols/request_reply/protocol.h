// REQUEST_REPLY's own objects: a client's end, a request at the server, and the protocol. Private to this folder.
#pragma once

#include "lrpc/netrpc/host.h"
#include "netrpc/protocols/request_reply/header.h"
#include "netrpc/protocols/request_reply/request_reply.h"
#include "netrpc/src/cells.h"
#include "netrpc/src/header_room.h"
#include "netrpc/src/lazy_event.h"
#include "netrpc/src/round_trip.h"

namespace lrpc::netrpc::request_reply {

class RequestReplyProtocol;

/// The client's end: one call at a time, sent again until its reply comes.
class ClientEnd final : public Session {
 public:
  ClientEnd(RequestReplyProtocol& protocol, Protocol& high, const ParticipantSet& participants, SessionRef lower);
  ~ClientEnd() override;

  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;
  /// A reply to the present call, from `lower`.
  void pop(Session& lower, Message&& reply) noexcept;
  /// The server says through `lower` that there will be no reply to the present call.
  void lost(Session& lower) noexcept;

 private:
  [[nodiscard]] RequestReplyProtocol& owner() const noexcept;
  Errc transmit() noexcept;
  [[nodiscard]] std::uint64_t connection() noexcept;
  void repeat_later() noexcept;
  void arm(Time now) noexcept;
  void expired() noexcept;
  void let_go() noexcept;
  void fail(Errc outcome) noexcept;
  void end(Errc outcome, Message&& reply) noexcept;

  SessionRef lower_;
  Transaction* transaction_ = nullptr;  ///< Of the present call; null: there is none.
  Message request_;                     ///< With its header.
  std::uint32_t xid_ = 0;
  unsigned sent_ = 0;          ///< Copies of the request.
  unsigned pauses_ = 0;        ///< After each of them another copy is sent, if that can be of use.
  bool left_ = false;          ///< A copy may have left this host: it has not lacked memory or a connection for all.
  bool connects_ = true;       ///< As far as is known, the layer below has connections.
  std::uint64_t sent_by_ = 0;  ///< The connection that has taken the last copy; 0: none has.
  bool aborts_ = false;  ///< At deadline_ the call is aborted (the caller's deadline). Otherwise it fails (give_up).
  Time sent_at_{};       ///< When the first copy was sent.
  Time due_{};           ///< When the next copy is due.
  Time deadline_{};
  Duration took_{};  ///< From the first copy of the last call to its first reply.
  RetryTimer round_trip_;
  LazyEvent timer_;
};

/// The server's end of one copy of a request, until it is answered. Nothing is remembered after that: a copy that comes
/// later is executed again.
class ServerEnd final : public Session {
 public:
  ServerEnd(RequestReplyProtocol& protocol, Protocol& high, const ParticipantSet& participants, Session& lower,
            std::uint32_t xid, HostKey of);
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class RequestReplyProtocol;
  void unreferenced() noexcept override;

  SessionRef lower_;
  const std::uint32_t xid_;
  const HostKey of_;
  bool answered_ = false;
};

class RequestReplyProtocol final : public Protocol {
 public:
  RequestReplyProtocol(Host& host, std::string name, Protocol& below, const RequestReplyOptions& options);
  ~RequestReplyProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class ClientEnd;
  friend class ServerEnd;

  void serve(Session& lower, std::uint32_t xid, Message&& request) noexcept;
  void no_reply(Session& lower, std::uint32_t xid, Errc why) noexcept;

  const RequestReplyOptions options_;
  Protocol& below_;
  Protocol* server_ = nullptr;  ///< The protocol that has enabled this one.
  std::uint32_t last_xid_;
  Map<std::uint32_t, ClientEnd*> calls_;  ///< Calls under way, and those to which a second reply may come.
  std::size_t clients_ = 0;
  Cells<ServerEnd> requests_;
  Map<HostKey, std::size_t> of_hosts_;  ///< How many of requests_ each host has.
};

}  // namespace lrpc::netrpc::request_reply
