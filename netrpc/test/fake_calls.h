// A protocol that gives the transaction service by itself: it echoes each request after a while. For tests of the
// layers above it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lrpc/netrpc/graph.h"
#include "lrpc/netrpc/host.h"
#include "netrpc/sim/test_hosts.h"

namespace lrpc::netrpc::test {

class FakeCalls final : public Protocol {
 public:
  class FakeSession final : public Session {
   public:
    FakeSession(FakeCalls& calls, Protocol& high_protocol, const ParticipantSet& participants)
        : Session(calls, high_protocol, participants), calls_(calls), answer_([this] { answer(); }) {}
    void call(Message request, Transaction& transaction, Duration timeout) noexcept override {
      calls_.timeouts.push_back(timeout);
      request_ = std::move(request);
      transaction_ = &transaction;
      if (calls_.takes == Duration::zero())
        answer();
      else
        calls_.host().events().schedule(answer_, calls_.takes);
    }
    void cancel(Transaction& transaction) noexcept override {
      if (transaction_ != &transaction) return;
      transaction_ = nullptr;
      ++calls_.cancelled;
      calls_.host().events().cancel(answer_);
      if (calls_.when_cancelled) calls_.when_cancelled();
    }
    void reply(Message message) noexcept override { calls_.replies.push_back(text_of(message)); }
    [[nodiscard]] Errc control(control::Request& request) noexcept override {
      const auto* const refuse = std::get_if<control::Refuse>(&request);
      if (refuse == nullptr) return Session::control(request);
      calls_.refused = refuse->reason;
      return Errc::ok;
    }

   private:
    void answer() noexcept {
      if (calls_.before_answer) calls_.before_answer();
      Transaction& transaction = *std::exchange(transaction_, nullptr);
      transaction.completed(calls_.outcome, calls_.outcome == Errc::ok ? std::move(request_) : Message());
    }
    FakeCalls& calls_;
    Event answer_;
    Message request_;
    Transaction* transaction_ = nullptr;
  };

  explicit FakeCalls(Host& host, std::string name = "calls") : Protocol(host, std::move(name)) {}
  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    if (refuses != Errc::ok) return refuses;
    return SessionRef(new FakeSession(*this, high, participants));
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    enabled = &high;
    enabled_for = participants;
    return {};
  }
  void open_disable(Protocol& /*high*/, const ParticipantSet& /*participants*/) noexcept override { enabled = nullptr; }
  /// Delivers a request from a peer, through a new session.
  void arrive(std::string_view request) {
    const SessionRef session(new FakeSession(*this, *enabled, enabled_for));
    if (enabled->open_done(*session, enabled_for) != Errc::ok) return;
    enabled->call_demux(*session, Message::copy_of(host().pool(), std::as_bytes(std::span(request))));
  }

  Duration takes{};
  Errc outcome = Errc::ok;
  Errc refuses = Errc::ok;  ///< What open() ends with, if not ok.
  Errc refused = Errc::ok;  ///< Why the last refused request was refused.
  int cancelled = 0;
  std::function<void()> when_cancelled;
  std::function<void()> before_answer;
  Protocol* enabled = nullptr;
  ParticipantSet enabled_for;
  std::vector<std::string> replies;
  std::vector<Duration> timeouts;
};

/// Composes one layer of `kind` over the existing instance `below`.
inline std::unique_ptr<Protocol> make_layer(const ProtocolKind& kind, Host& host, Protocol& below,
                                            const Options& options = {}) {
  Result<std::unique_ptr<Protocol>> made = kind.make({host, "layer", {&below}, options});
  return made ? std::move(made).value() : nullptr;
}

}  // namespace lrpc::netrpc::test
