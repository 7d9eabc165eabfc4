// The layers below FRAGMENT in its tests: one that shows each outgoing packet to the test, and one with peers that
// exist only as addresses.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

class Tap final : public Protocol {
 public:
  Tap(Host& host, Protocol& lower) : Protocol(host, "tap"), lower_(lower) {}

  class TapSession final : public Session {
   public:
    TapSession(Tap& tap, Protocol& high, SessionRef lower)
        : Session(tap, high, lower->participants()), tap_(tap), lower_(std::move(lower)) {
      lower_->above = this;
    }
    ~TapSession() override { lower_->above = nullptr; }
    Errc push(Message message) noexcept override {
      if (!tap_.on_push) return lower_->push(std::move(message));
      tap_.on_push(*lower_, std::move(message));
      return Errc::ok;
    }
    Errc control(control::Request& request) noexcept override { return lower_->control(request); }

   private:
    Tap& tap_;
    SessionRef lower_;
  };

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    high_ = &high;
    auto lower = lower_.open(*this, participants);
    if (!lower) return lower.error();
    if ((*lower)->above != nullptr) return SessionRef((*lower)->above);
    return SessionRef(new TapSession(*this, high, *lower));
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    high_ = &high;
    return lower_.open_enable(*this, participants);
  }
  void demux(Session& lower, Message message) noexcept override {
    if (high_ == nullptr) return;
    // A session that no layer above keeps is made for this message alone.
    const SessionRef session(lower.above != nullptr
                                 ? lower.above
                                 : std::make_unique<TapSession>(*this, *high_, SessionRef(&lower)).release());
    high_->demux(*session, std::move(message));
  }
  Errc control(control::Request& request) noexcept override { return lower_.control(request); }

  /// Replaces sending. Empty: every packet is sent.
  std::function<void(Session& lower, Message message)> on_push;

 private:
  Protocol& lower_;
  Protocol* high_ = nullptr;
};

/// Sessions to peers that do not exist.
class FakePeers {
 public:
  explicit FakePeers(Protocol& lower) : lower_(lower) {}
  void deliver(Protocol& high, HostAddress from, HostAddress to, Message message) {
    class Fake final : public Session {
     public:
      using Session::Session;
      Errc push(Message /*message*/) noexcept override { return Errc::ok; }
      Errc control(control::Request& request) noexcept override {
        if (control::answered(request, control::LocalHost{participants().local.host})) return Errc::ok;
        return Session::control(request);
      }
    };
    ParticipantSet participants{protocol_numbers::kFragment, {}, {}};
    participants.local.host = to;
    participants.remote.host = from;
    // Each packet of a peer comes through a new session, because a lower layer may drop sessions at any time.
    const SessionRef session(new Fake(lower_, high, participants));
    high.demux(*session, std::move(message));
  }

 private:
  Protocol& lower_;
};

}  // namespace lrpc::netrpc
