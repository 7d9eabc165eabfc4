// SELECT's own objects; the forwarding SELECT is made of them too.
#pragma once

#include <memory>

#include "netrpc/protocols/select/channel_pool.h"
#include "netrpc/protocols/select/select.h"
#include "netrpc/protocols/select/select_header.h"
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

/// The server's end: one request, from its arrival to its reply. Its memory is used again.
class SelectServerSession final : public Session {
 public:
  SelectServerSession(SelectProtocol& protocol, Protocol& high, const ParticipantSet& participants, Session& lower,
                      std::uint16_t command) noexcept;
  void reply(Message message) noexcept override { finish(SelectHeader::kOk, std::move(message)); }
  /// Answers with a status; once.
  void finish(SelectHeader::Status status, Message&& message) noexcept;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  void unreferenced() noexcept override;

 private:
  friend class SelectProtocol;
  SessionRef lower_;
  const std::uint16_t command_;
  bool answered_ = false;
};

class SelectProtocol : public Protocol {
 public:
  /// `number`: by which it identifies itself to the protocol below.
  SelectProtocol(Host& host, std::string name, Protocol& below, const SelectOptions& options,
                 ProtocolNumber number = protocol_numbers::kSelect);
  ~SelectProtocol() override;

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  void call_demux(Session& lower, Message request) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 protected:
  /// A request for a command that nobody serves here: answers that.
  virtual void unserved(SelectServerSession& session, const SelectHeader& header, Message&& request) noexcept;
  /// The channels to a host; lives while it is busy, has users, or until the next sweep but one.
  /// `port`: of the host, 0 for the one that all have.
  [[nodiscard]] Result<ChannelPool*> pool_to(HostAddress host, std::uint16_t port = 0);
  /// Enables the protocol at the layer below, once.
  [[nodiscard]] Status enable_below();

 private:
  friend class SelectSession;
  friend class SelectServerSession;
  /// Memory of a server session that is not in use.
  union Cell;

  [[nodiscard]] void* take_cell() noexcept;
  void put_cell(void* memory) noexcept;
  void sweep() noexcept;
  void drop_unused_pools(bool at_once) noexcept;

  const SelectOptions options_;
  Protocol& below_;
  const ProtocolNumber number_;
  bool enabled_below_ = false;
  Map<CommandSessionKey, SelectSession*> sessions_;
  Map<HostKey, std::unique_ptr<ChannelPool>> pools_;
  Map<CommandKey, Protocol*> servers_;  ///< Command 0: for all others.
  Cell* free_cells_ = nullptr;
  std::size_t cells_in_use_ = 0;
  Event sweep_;
};

/// The status of a reply for an outcome, and the reverse. A peer may send any number.
[[nodiscard]] SelectHeader::Status select_status(Errc outcome) noexcept;
[[nodiscard]] Errc select_outcome(std::uint8_t status) noexcept;

}  // namespace lrpc::netrpc
