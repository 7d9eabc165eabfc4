// What layers without a header have in common: they give the service of what they stand on, can stand anywhere in a
// graph and be told nothing about their neighbours, who are told nothing about them.
//
// Towards the layer below, each protocol above is stood for by a Port of its own: so the layer below sees as many
// high-level protocols as there are, and what it asks of one (AdvertisedMaximum) is asked of the right one. Each
// session wraps one lower session and is found through Session::above.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

class TransparentProtocol;
class TransparentPort;

/// Wraps one lower session. Exists while somebody above refers to it or a message goes through it; its memory is the
/// port's, so that wrapping costs no allocation once warm.
class TransparentSession final : public Session {
 public:
  TransparentSession(TransparentProtocol& layer, TransparentPort& port);

  [[nodiscard]] Errc push(Message message) noexcept override;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  [[nodiscard]] Session& lower() const noexcept { return *lower_; }
  /// For a layer that adds what it knows of a request. Made anew from those of the lower session for each request.
  [[nodiscard]] ParticipantSet& own_participants() noexcept { return mutable_participants(); }

 protected:
  void unreferenced() noexcept override;

 private:
  friend class TransparentPort;
  TransparentProtocol& layer_;
  TransparentPort& port_;
  SessionRef lower_;
  TransparentSession* next_free_ = nullptr;
};

/// Stands for one protocol above, towards the layer below.
class TransparentPort final : public Protocol {
 public:
  TransparentPort(TransparentProtocol& layer, Protocol& high);

  /// The session that wraps `lower`: the one there is, or one made for it.
  [[nodiscard]] SessionRef wrap(Session& lower);
  [[nodiscard]] Protocol& high() const noexcept { return high_; }
  [[nodiscard]] std::size_t sessions() const noexcept { return in_use_; }

  [[nodiscard]] Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  void call_demux(Session& lower, Message request) noexcept override;
  /// Asked from below: the protocol above answers.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

 private:
  friend class TransparentSession;
  [[nodiscard]] bool wraps(const Session& lower) const noexcept;
  void unwrap(TransparentSession& session) noexcept;

  TransparentProtocol& layer_;
  Protocol& high_;
  std::vector<std::unique_ptr<TransparentSession>> sessions_;
  TransparentSession* free_ = nullptr;
  std::size_t in_use_ = 0;
};

/// Passes everything through. A layer overrides what it wants to see or to change, and calls the base to pass on.
class TransparentProtocol : public Protocol {
 public:
  TransparentProtocol(Host& host, std::string name, Protocol& below) : Protocol(host, std::move(name)), below_(below) {}

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override;
  Status open_enable(Protocol& high, const ParticipantSet& participants) override;
  void open_disable(Protocol& high, const ParticipantSet& participants) noexcept override;
  /// Statistics are the layer's own; AdvertisedMaximum is the largest of the protocols' above; everything else is
  /// asked of the layer below.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  // ---- what goes through; each passes it on. Under the monitor, `session` is referred to for as long. ----
  [[nodiscard]] virtual Errc pass_push(TransparentSession& session, Message message) noexcept;
  /// `timeout` is over zero: a call without any time left is completed before.
  virtual void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                         Duration timeout) noexcept;
  virtual void pass_cancel(TransparentSession& session, Transaction& transaction) noexcept;
  virtual void pass_reply(TransparentSession& session, Message message) noexcept;
  virtual void pass_demux(TransparentSession& session, Message message) noexcept;
  virtual void pass_call_demux(TransparentSession& session, Message request) noexcept;
  [[nodiscard]] virtual Errc pass_control(TransparentSession& session, control::Request& request) noexcept;
  /// What the layer below asks of the protocol above.
  [[nodiscard]] virtual Errc pass_high_control(Protocol& high, control::Request& request) noexcept;
  [[nodiscard]] virtual Errc pass_open_done(TransparentSession& session, const ParticipantSet& participants) noexcept;

 protected:
  [[nodiscard]] Protocol& below() const noexcept { return below_; }
  [[nodiscard]] std::size_t sessions() const noexcept;

 private:
  [[nodiscard]] TransparentPort& port_of(Protocol& high);

  Protocol& below_;
  /// As many as there are protocols above: few, and none of a peer's choosing.
  std::vector<std::unique_ptr<TransparentPort>> ports_;
};

}  // namespace lrpc::netrpc
