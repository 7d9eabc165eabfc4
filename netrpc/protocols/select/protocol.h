// SELECT's own objects. The forwarding SELECT uses them, too.
#pragma once

#include <memory>

#include "netrpc/protocols/select/header.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/src/cells.h"
#include "netrpc/src/command_keys.h"

namespace lrpc::netrpc {

class SelectProtocol;

/// The client's end: one for each host and command that is open.
class SelectSession final : public Session {
 public:
  SelectSession(SelectProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                ChannelPool& pool) noexcept;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override { pool_.cancel(transaction); }
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  void unreferenced() noexcept override;

 private:
  ChannelPool& pool_;
};

/// The server's end: one request, from its arrival to its reply.
class SelectServerSession final : public Session {
 public:
  SelectServerSession(SelectProtocol& protocol, Protocol& high, const ParticipantSet& participants, Session& lower,
                      std::uint16_t command) noexcept;
  void reply(Message message) noexcept override { finish(SelectHeader::kOk, std::move(message)); }
  /// Answers with a status. Only the first call does something.
  void finish(SelectHeader::Status status, Message&& message) noexcept;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  void unreferenced() noexcept override;

 private:
  friend class SelectProtocol;
  SessionRef lower_;
  const std::uint16_t command_;
  bool answered_ = false;
  bool executed_ = false;
};

class SelectProtocol : public Protocol {
 public:
  /// `number`: by which SELECT identifies itself to the protocol below.
  SelectProtocol(Host& host, std::string name, Protocol& below, const ChannelPoolOptions& options,
                 ProtocolNumber number = protocol_numbers::kSelect);
  ~SelectProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void call_demux(Session& lower, Message request) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  /// A request for a command that nobody serves here. Answers kNoSuchCommand.
  virtual void unserved(SelectServerSession& session, const SelectHeader& header, Message&& request) noexcept;
  [[nodiscard]] ChannelPools& pools() noexcept { return pools_; }
  /// The layer below asks to make permanent what a request has changed (control::Commit): asks the request's server.
  [[nodiscard]] Errc settle(control::Request& request) noexcept;
  /// Enables the protocol at the layer below, once.
  [[nodiscard]] Status enable_below();

 private:
  friend class SelectSession;
  friend class SelectServerSession;

  Protocol& below_;
  const ProtocolNumber number_;
  bool enabled_below_ = false;
  Map<CommandSessionKey, SelectSession*> sessions_;
  ChannelPools pools_;
  Map<std::uint16_t, Protocol*> servers_;  ///< Command 0: for all others.
  Cells<SelectServerSession> requests_;
  SelectServerSession* finishing_ = nullptr;  ///< The request whose answer is being passed down; null: none.
};

/// The status of a reply for an outcome, and the reverse. A peer may send any number.
[[nodiscard]] SelectHeader::Status select_status(Errc outcome) noexcept;
[[nodiscard]] Errc select_outcome(std::uint8_t status) noexcept;

}  // namespace lrpc::netrpc
