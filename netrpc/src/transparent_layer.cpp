#include "transparent_layer.h"

#include <algorithm>

#include "attempt.h"

namespace lrpc::netrpc {

// ---- the session ----

TransparentSession::TransparentSession(TransparentProtocol& layer, TransparentPort& port)
    : Session(layer, port.high(), {}), layer_(layer), port_(port) {}

Errc TransparentSession::push(Message message) noexcept { return layer_.pass_push(*this, std::move(message)); }

void TransparentSession::call(Message request, Transaction& transaction, Duration timeout) noexcept {
  if (timeout <= Duration::zero()) return transaction.completed(Errc::call_aborted, {});
  const SessionRef keep(this);  // the caller may drop its reference in completed()
  layer_.pass_call(*this, std::move(request), transaction, timeout);
}

void TransparentSession::cancel(Transaction& transaction) noexcept { layer_.pass_cancel(*this, transaction); }

void TransparentSession::reply(Message message) noexcept { layer_.pass_reply(*this, std::move(message)); }

Errc TransparentSession::control(control::Request& request) noexcept {
  if (std::holds_alternative<control::Statistics>(request)) return layer_.control(request);
  return layer_.pass_control(*this, request);
}

void TransparentSession::unreferenced() noexcept { port_.unwrap(*this); }

// ---- the port ----

TransparentPort::TransparentPort(TransparentProtocol& layer, Protocol& high)
    : Protocol(layer.host(), layer.name()), layer_(layer), high_(high) {}

/// Only this port sets `above` of a session that belongs to it.
bool TransparentPort::wraps(const Session& lower) const noexcept {
  return lower.above != nullptr && &lower.high() == this;
}

SessionRef TransparentPort::wrap(Session& lower) {
  if (wraps(lower)) return SessionRef(lower.above);
  if (free_ == nullptr) {
    sessions_.push_back(std::make_unique<TransparentSession>(layer_, *this));
    sessions_.back()->next_free_ = std::exchange(free_, sessions_.back().get());
  }
  TransparentSession& session = *std::exchange(free_, free_->next_free_);
  ++in_use_;
  session.lower_ = SessionRef(&lower);
  session.mutable_participants() = lower.participants();
  session.above = nullptr;
  if (&lower.high() == this) lower.above = &session;
  return SessionRef(&session);
}

SessionRef TransparentPort::try_wrap(Session& lower) noexcept {
  SessionRef wrapped;
  if (!attempt([&] { wrapped = wrap(lower); })) ++layer_.counted.refused;
  return wrapped;
}

void TransparentPort::unwrap(TransparentSession& session) noexcept {
  const SessionRef lower = std::exchange(session.lower_, {});  // dropped last: its destruction may call this layer
  if (lower->above == &session) lower->above = nullptr;
  session.next_free_ = std::exchange(free_, &session);
  --in_use_;
}

Errc TransparentPort::open_done(Session& lower, const ParticipantSet& participants) noexcept {
  const SessionRef session = try_wrap(lower);
  if (!session) return Errc::limit_reached;
  return layer_.pass_open_done(static_cast<TransparentSession&>(*session), participants);
}

void TransparentPort::demux(Session& lower, Message message) noexcept {
  const SessionRef session = try_wrap(lower);
  if (session) layer_.pass_demux(static_cast<TransparentSession&>(*session), std::move(message));
}

void TransparentPort::call_demux(Session& lower, Message request) noexcept {
  const bool kept = wraps(lower);  // from an earlier request, perhaps with other participants
  const SessionRef session = try_wrap(lower);
  if (!session) {
    control::Request refuse = control::Refuse{Errc::limit_reached};
    return (void)lower.control(refuse);
  }
  auto& wrapped = static_cast<TransparentSession&>(*session);
  if (kept) wrapped.own_participants() = lower.participants();
  layer_.pass_call_demux(wrapped, std::move(request));
}

Errc TransparentPort::control(control::Request& request) noexcept { return layer_.pass_high_control(high_, request); }

// ---- the layer ----

TransparentPort& TransparentProtocol::port_of(Protocol& high) {
  for (const std::unique_ptr<TransparentPort>& port : ports_)
    if (&port->high() == &high) return *port;
  return *ports_.emplace_back(std::make_unique<TransparentPort>(*this, high));
}

std::size_t TransparentProtocol::sessions() const noexcept {
  std::size_t count = 0;
  for (const std::unique_ptr<TransparentPort>& port : ports_) count += port->sessions();
  return count;
}

Result<SessionRef> TransparentProtocol::open(Protocol& high, const ParticipantSet& participants) {
  TransparentPort& port = port_of(high);
  Result<SessionRef> lower = below_.open(port, participants);
  if (!lower) return lower;
  return port.wrap(**lower);
}

Status TransparentProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  return below_.open_enable(port_of(high), participants);
}

void TransparentProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  below_.open_disable(port_of(high), participants);
}

Errc TransparentProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions(), counted.state)) return Errc::ok;
  // Asked by a protocol below that knows this layer, not one of its ports.
  if (auto* const advertised = std::get_if<control::AdvertisedMaximum>(&request)) {
    Errc answer = Errc::not_supported;
    control::AdvertisedMaximum largest;
    for (const std::unique_ptr<TransparentPort>& port : ports_) {
      control::Request each = control::AdvertisedMaximum{};
      if (port->high().control(each) != Errc::ok) continue;
      answer = Errc::ok;
      largest.size = std::max(largest.size, std::get<control::AdvertisedMaximum>(each).size);
    }
    if (answer == Errc::ok) *advertised = largest;
    return answer;
  }
  // There is no idle state to drop: the memory of former sessions is kept for the next ones.
  if (std::holds_alternative<control::DropIdle>(request)) return Errc::ok;
  return below_.control(request);
}

}  // namespace lrpc::netrpc
