// What layers without a header have in common: they give the service of the protocol below and can stand anywhere in a
// graph. They need no knowledge of their neighbours, nor their neighbours of them.
//
// To the layer below, each protocol above is represented by a TransparentPort of its own. So the layer below sees as
// many high-level protocols as there are, and its requests to one of them (AdvertisedMaximum) reach the right one. Each
// session wraps one lower session and is found through Session::above.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

class TransparentProtocol;
class TransparentPort;

/// Wraps one lower session. Exists while a protocol above refers to it or a message passes through it. The port owns
/// its memory, so that wrapping costs no allocation in the steady state.
class TransparentSession final : public Session {
 public:
  TransparentSession(TransparentProtocol& layer, TransparentPort& port);

  [[nodiscard]] Errc push(Message message) noexcept override;
  void call(Message request, Transaction& transaction, Duration timeout) noexcept override;
  void cancel(Transaction& transaction) noexcept override;
  void reply(Message message) noexcept override;
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  [[nodiscard]] Session& lower() const noexcept { return *lower_; }
  /// For a layer that adds what it knows about a request. Copied from the lower session for each request.
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

/// Represents one protocol above to the layer below.
class TransparentPort final : public Protocol {
 public:
  TransparentPort(TransparentProtocol& layer, Protocol& high);

  /// The session that wraps `lower`: the existing one, or a new one.
  [[nodiscard]] SessionRef wrap(Session& lower);
  /// The same. Null: there is no memory for it; that is counted.
  [[nodiscard]] SessionRef try_wrap(Session& lower) noexcept;
  [[nodiscard]] Protocol& high() const noexcept { return high_; }
  [[nodiscard]] std::size_t sessions() const noexcept { return in_use_; }

  [[nodiscard]] Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override;
  void demux(Session& lower, Message message) noexcept override;
  void call_demux(Session& lower, Message request) noexcept override;
  /// For the layer below: the protocol above answers.
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
  /// Statistics are the layer's own; AdvertisedMaximum is the largest of the protocols above; DropIdle has nothing to
  /// drop; the layer below answers everything else.
  [[nodiscard]] Errc control(control::Request& request) noexcept override;

  // ---- what passes through: each passes it on, under the monitor; the caller holds a reference to `session` ----
  [[nodiscard]] virtual Errc pass_push(TransparentSession& session, Message message) noexcept {
    ++counted.sent;
    return session.lower().push(std::move(message));
  }
  /// `timeout` is above zero: TransparentSession::call() itself completes a call without time left.
  virtual void pass_call(TransparentSession& session, Message request, Transaction& transaction,
                         Duration timeout) noexcept {
    ++counted.sent;
    session.lower().call(std::move(request), transaction, timeout);
  }
  virtual void pass_cancel(TransparentSession& session, Transaction& transaction) noexcept {
    session.lower().cancel(transaction);
  }
  virtual void pass_reply(TransparentSession& session, Message message) noexcept {
    session.lower().reply(std::move(message));
  }
  virtual void pass_demux(TransparentSession& session, Message message) noexcept {
    ++counted.received;
    session.high().demux(session, std::move(message));
  }
  virtual void pass_call_demux(TransparentSession& session, Message request) noexcept {
    ++counted.received;
    session.high().call_demux(session, std::move(request));
  }
  [[nodiscard]] virtual Errc pass_control(TransparentSession& session, control::Request& request) noexcept {
    return session.lower().control(request);
  }
  /// A request of the layer below to the protocol above.
  [[nodiscard]] virtual Errc pass_high_control(Protocol& high, control::Request& request) noexcept {
    return high.control(request);
  }
  [[nodiscard]] virtual Errc pass_open_done(TransparentSession& session, const ParticipantSet& participants) noexcept {
    return session.high().open_done(session, participants);
  }

 protected:
  [[nodiscard]] Protocol& below() const noexcept { return below_; }
  [[nodiscard]] std::size_t sessions() const noexcept;

 private:
  friend class TransparentPort;
  [[nodiscard]] TransparentPort& port_of(Protocol& high);

  Protocol& below_;
  /// One for each protocol above: few, and peers cannot add any.
  std::vector<std::unique_ptr<TransparentPort>> ports_;
};

}  // namespace lrpc::netrpc
