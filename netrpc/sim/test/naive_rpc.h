// A transaction protocol with a chosen flaw, which the storm must find. Works over any datagram service.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"
#include "lrpc/netrpc/wire.h"

namespace lrpc::netrpc {

enum class Flaw : std::uint8_t {
  none,              ///< At most once within one life of the server: wrong only if servers crash.
  at_least_once,     ///< Executes a duplicate request again.
  impatient_never,   ///< Sends three times, then waits for ever.
  sends_once,        ///< Sends once, then gives up.
  sends_five_times,  ///< Sends five times, then gives up.
  forgets_callers,   ///< Does not complete one call in a thousand.
  dawdles,           ///< Delays one reply in a thousand by ten seconds.
  wrong_bytes,       ///< Flips a bit in one reply in a hundred.
  remembers,         ///< Never forgets a reply.
};

class NaiveRpc final : public Protocol {
 public:
  static constexpr ProtocolNumber kNumber = 251;

  NaiveRpc(Host& host, Protocol& below, Flaw flaw) : Protocol(host, "naive"), below_(below), flaw_(flaw) {
    (void)below_.open_enable(*this, {kNumber, {}, {}});
  }
  ~NaiveRpc() override { below_.open_disable(*this, {kNumber, {}, {}}); }

  Result<SessionRef> open(Protocol& high, const ParticipantSet& participants) override {
    ParticipantSet below{kNumber, {}, {}};
    below.remote.host = participants.remote.host;
    Result<SessionRef> lower = below_.open(*this, below);
    if (!lower) return lower.error();
    return SessionRef(new ClientSession(*this, high, participants, *lower));
  }
  Status open_enable(Protocol& high, const ParticipantSet& /*participants*/) override {
    server_ = &high;
    return {};
  }
  void open_disable(Protocol& /*high*/, const ParticipantSet& /*participants*/) noexcept override { server_ = nullptr; }

  void demux(Session& lower, Message message) noexcept override {
    Message::Header<kHeader> header;
    message.pop(header);
    if (!header) return;
    WireReader reader(header.bytes);
    const bool is_reply = reader.get<std::uint8_t>() != 0;
    const auto id = reader.get<std::uint64_t>();
    const auto size = reader.get<std::uint32_t>();
    message.truncate(size);
    if (message.size() < size) return;
    if (is_reply) return answered(id, std::move(message));
    if (flaw_ != Flaw::at_least_once) {
      const auto [seen, first] = replies_.try_emplace({lower.peer().value, id});
      if (!first) {
        if (seen->second.done) send(lower, true, id, seen->second.message.share());
        return;
      }
    }
    const SessionRef session(std::make_unique<ServerSession>(*this, *server_, lower, id).release());
    server_->call_demux(*session, std::move(message));
  }

  [[nodiscard]] Errc control(control::Request& request) noexcept override {
    if (std::holds_alternative<control::DropIdle>(request)) {
      if (flaw_ != Flaw::remembers) replies_.clear();
      return Errc::ok;
    }
    if (auto* const statistics = std::get_if<control::Statistics>(&request)) {
      statistics->state = replies_.size() + calls_.size();
      return Errc::ok;
    }
    if (control::answered(request, control::MaximumMessage{16000})) return Errc::ok;
    return Protocol::control(request);
  }

 private:
  static constexpr std::size_t kHeader = 13;
  struct Call {
    explicit Call(std::function<void()> again) : timer(std::move(again)) {}
    Transaction* transaction = nullptr;
    SessionRef lower;
    Message request;
    int sent = 0;
    Event timer;
  };
  struct Kept {
    bool done = false;
    Message message;
  };
  class ClientSession final : public Session {
   public:
    ClientSession(NaiveRpc& naive, Protocol& high, const ParticipantSet& participants, SessionRef lower)
        : Session(naive, high, participants), naive_(naive), lower_(std::move(lower)) {}
    void call(Message request, Transaction& transaction, Duration /*timeout*/) noexcept override {
      naive_.call(lower_, std::move(request), transaction);
    }
    void cancel(Transaction& transaction) noexcept override { naive_.cancel(transaction); }

   private:
    NaiveRpc& naive_;
    SessionRef lower_;
  };
  class ServerSession final : public Session {
   public:
    ServerSession(NaiveRpc& naive, Protocol& high, Session& lower, std::uint64_t id)
        : Session(naive, high, lower.participants()), naive_(naive), lower_(&lower), id_(id) {}
    void reply(Message message) noexcept override {
      if (naive_.flaw_ == Flaw::wrong_bytes && naive_.host().random() % 100 == 0 && message.size() > 0)
        message.bytes()[0] ^= std::byte{1};
      const auto kept = naive_.replies_.find({lower_->peer().value, id_});
      if (kept != naive_.replies_.end()) {
        kept->second.done = true;
        kept->second.message = message.share();
      }
      naive_.send(*lower_, true, id_, std::move(message));
    }

   private:
    NaiveRpc& naive_;
    SessionRef lower_;
    std::uint64_t id_;
  };

  void send(Session& lower, bool is_reply, std::uint64_t id, Message message) {
    const auto size = static_cast<std::uint32_t>(message.size());
    WireWriter(message.push(kHeader)).put(static_cast<std::uint8_t>(is_reply)).put(id).put(size);
    (void)lower.push(std::move(message));
  }
  void call(const SessionRef& lower, Message request, Transaction& transaction) {
    const std::uint64_t id = host().random();  // differs in each life of this host
    auto call = std::make_unique<Call>([this, id] { again(id); });
    call->transaction = &transaction;
    call->lower = lower;
    call->request = std::move(request);
    calls_.emplace(id, std::move(call));
    again(id);
  }
  void again(std::uint64_t id) {
    Call& call = *calls_.at(id);
    if (call.sent == 1000) return answered(id, {}, Errc::call_failed);
    if (++call.sent > 3 && flaw_ == Flaw::impatient_never) return;
    if (call.sent > 200) return answered(id, {}, Errc::call_failed);
    const int most = flaw_ == Flaw::sends_once ? 1 : flaw_ == Flaw::sends_five_times ? 5 : 1000;
    if (call.sent > most) return answered(id, {}, Errc::call_failed);
    host().events().schedule(call.timer, std::chrono::milliseconds(most < 1000 ? 100 : 2));
    send(*call.lower, false, id, call.request.share());
  }
  void answered(std::uint64_t id, Message reply, Errc outcome = Errc::ok) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return;
    if (flaw_ == Flaw::forgets_callers && id % 1000 == 0) return host().events().cancel(found->second->timer), void();
    if (flaw_ == Flaw::dawdles && id % 1000 == 0 && found->second->sent < 1000) {
      found->second->sent = 1000;
      host().events().schedule(found->second->timer, std::chrono::seconds(10));
      return;
    }
    const std::unique_ptr<Call> call = std::move(found->second);
    calls_.erase(found);
    call->transaction->completed(outcome, std::move(reply));
  }
  void cancel(Transaction& transaction) {
    std::erase_if(calls_, [&](const auto& entry) { return entry.second->transaction == &transaction; });
  }

  Protocol& below_;
  const Flaw flaw_;
  Protocol* server_ = nullptr;
  std::map<std::uint64_t, std::unique_ptr<Call>> calls_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Kept> replies_;
};

}  // namespace lrpc::netrpc
