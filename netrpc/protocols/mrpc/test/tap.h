// A layer between M_RPC and the device for tests: sees each packet with its header, and may drop, duplicate or keep it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "lrpc/netrpc/protocol.h"
#include "netrpc/protocols/mrpc/header.h"

namespace lrpc::netrpc::mrpc {

class Tap final : public Protocol {
 public:
  enum class Fate : std::uint8_t { send, lose, twice, keep, refuse };
  Tap(Host& host, Protocol& lower) : Protocol(host, "tap"), lower_(lower) {}

  /// Decides the fate of each packet that M_RPC sends. Empty: all are sent.
  std::function<Fate(const Header&)> judge;
  Errc refusal = Errc::host_unreachable;  ///< The result of push() if the fate is refuse.
  std::vector<Header> sent;               ///< The header of each packet that M_RPC pushed, whatever its fate.
  bool record = true;
  /// Sends the kept packets, in order.
  void release() {
    std::vector<std::pair<SessionRef, Message>> kept;
    kept.swap(kept_);
    for (auto& [session, message] : kept) (void)session->push(std::move(message));
  }
  /// Releases the sessions that only the tap holds.
  void drop_idle() {
    std::erase_if(sessions_, [](const SessionRef& session) { return session->references() == 1; });
  }
  [[nodiscard]] std::size_t count(Type type) const {
    std::size_t n = 0;
    for (const Header& header : sent) n += header.type == type ? 1 : 0;
    return n;
  }

  [[nodiscard]] bool enabled() const noexcept { return high_ != nullptr; }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    Result<SessionRef> lower = lower_.open(*this, participants);
    if (!lower) return lower.error();
    return SessionRef(through(high, participants, *lower));
  }
  Status open_enable(Protocol& high, const ParticipantSet& participants) override {
    high_ = &high;
    return lower_.open_enable(*this, participants);
  }
  void open_disable(Protocol& /*high*/, const ParticipantSet& participants) noexcept override {
    lower_.open_disable(*this, participants);
  }
  Errc open_done(Session& lower, const ParticipantSet& participants) noexcept override {
    (void)through(*high_, participants, SessionRef(&lower));
    return Errc::ok;
  }
  void demux(Session& lower, Message message) noexcept override {
    const SessionRef keep(lower.above);
    if (keep) keep->high().demux(*keep, std::move(message));
  }
  Errc control(control::Request& request) noexcept override { return lower_.control(request); }

 private:
  class Through final : public Session {
   public:
    Through(Tap& tap, Protocol& high, const ParticipantSet& participants, SessionRef lower)
        : Session(tap, high, participants), tap_(tap), lower_(std::move(lower)) {
      lower_->above = this;
    }
    Errc push(Message message) noexcept override {
      std::byte bytes[Header::kSize];
      if (message.copy_to(bytes) == sizeof bytes) {
        const Header header = Header::decode(bytes);
        if (tap_.record) tap_.sent.push_back(header);
        switch (tap_.judge ? tap_.judge(header) : Fate::send) {
          case Fate::send: break;
          case Fate::lose: return Errc::ok;
          case Fate::twice: (void)lower_->push(message.share()); break;
          case Fate::refuse: return tap_.refusal;
          case Fate::keep: tap_.kept_.emplace_back(lower_, std::move(message)); return Errc::ok;
        }
      }
      return lower_->push(std::move(message));
    }
    Errc control(control::Request& request) noexcept override { return lower_->control(request); }

   private:
    ~Through() override { lower_->above = nullptr; }
    void unreferenced() noexcept override { delete this; }
    Tap& tap_;
    SessionRef lower_;
  };
  Session* through(Protocol& high, const ParticipantSet& participants, const SessionRef& lower) {
    if (lower->above == nullptr) sessions_.emplace_back(new Through(*this, high, participants, lower));
    return lower->above;
  }

  Protocol& lower_;
  Protocol* high_ = nullptr;
  std::vector<SessionRef> sessions_;
  std::vector<std::pair<SessionRef, Message>> kept_;
};

}  // namespace lrpc::netrpc::mrpc
