// A layer in the place of an attacker on the wire: it sees every packet, and can drop, change, keep and inject packets.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::auth {

class Tap final : public Protocol {
 public:
  Tap(Host& host, Protocol& below) : Protocol(host, "tap"), below_(below) {}

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (refuses != Errc::ok) return refuses;
    auto lower = below_.open(*this, participants);
    if (!lower) return lower;
    if ((*lower)->above != nullptr) return SessionRef((*lower)->above);
    return add(high, participants, std::move(*lower));
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    high_ = &high;
    return below_.open_enable(*this, participants);
  }
  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    (void)add(*high_, participants, SessionRef(&lower));
    return Errc::ok;
  }
  void demux(Session& lower, Message message) noexcept override {
    arrived.push_back(text_of(message));
    if (on_arrival && !on_arrival(arrived.back())) return;
    inject(arrived.back(), lower.above);
  }
  Errc control(control::Request& request) noexcept override { return below_.control(request); }

  /// Makes `packet` arrive through `session`; through the first known session, if null.
  void inject(const std::string& packet, Session* session = nullptr) {
    if (session == nullptr) session = sessions_.front().get();
    session->high().demux(*session, Message::copy_of(host().pool(), std::as_bytes(std::span(packet))));
  }

  Errc refuses = Errc::ok;  ///< What open() ends with, if not ok.
  std::vector<std::string> arrived;
  std::function<bool(std::string& packet)> on_arrival;  ///< May change the packet; false drops it.

 private:
  class TapSession final : public Session {
   public:
    TapSession(Tap& tap, Protocol& high, const ParticipantSet& participants, SessionRef lower)
        : Session(tap, high, participants), lower_(std::move(lower)) {
      lower_->above = this;
    }
    ~TapSession() override { lower_->above = nullptr; }
    Errc push(Message message) noexcept override { return lower_->push(std::move(message)); }

   private:
    SessionRef lower_;
  };
  SessionRef add(Protocol& high, const ParticipantSet& participants, SessionRef lower) {
    SessionRef session(new TapSession(*this, high, participants, std::move(lower)));
    sessions_.push_back(session);
    return session;
  }

  Protocol& below_;
  Protocol* high_ = nullptr;
  std::vector<SessionRef> sessions_;
};

}  // namespace lrpc::netrpc::auth
