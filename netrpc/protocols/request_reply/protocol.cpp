// The protocol object, and the server's end.
#include "netrpc/protocols/request_reply/protocol.h"

#include "lrpc/detail/shim/most_of_one.h"
#include "lrpc/netrpc/session_cache.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"

namespace lrpc::netrpc {

std::unique_ptr<Protocol> make_request_reply(Host& host, std::string name, Protocol& below,
                                             const RequestReplyOptions& options) {
  return std::make_unique<request_reply::RequestReplyProtocol>(host, std::move(name), below, options);
}

namespace request_reply {

namespace {
constexpr ParticipantSet kBelow{protocol_numbers::kRequestReply, {}, {}};
}

// ---- the server's end ----

ServerEnd::ServerEnd(RequestReplyProtocol& protocol, Protocol& high, const ParticipantSet& participants, Session& lower,
                     std::uint32_t xid, HostKey of)
    : Session(protocol, high, participants), lower_(&lower), xid_(xid), of_(of) {}

void ServerEnd::reply(Message message) noexcept {
  if (std::exchange(answered_, true)) return;
  auto& owner = static_cast<RequestReplyProtocol&>(protocol());
  if (message.pool() == nullptr) message = Message(owner.host().pool());
  Errc outcome = Errc::limit_reached;
  if (push_header(Header{xid_, Type::reply}, message)) {
    ++owner.counted.sent;
    outcome = lower_->push(std::move(message));
  }
  if (outcome != Errc::ok) owner.no_reply(*lower_, xid_, outcome);
}

Errc ServerEnd::control(control::Request& request) noexcept {
  if (const auto* const refuse = std::get_if<control::Refuse>(&request)) {
    if (!std::exchange(answered_, true))
      static_cast<RequestReplyProtocol&>(protocol()).no_reply(*lower_, xid_, refuse->reason);
    return Errc::ok;
  }
  return less_header(lower_->control(request), request, Header::kSize);
}

void ServerEnd::unreferenced() noexcept {
  auto& owner = static_cast<RequestReplyProtocol&>(protocol());
  if (std::size_t* const count = owner.of_hosts_.resolve(of_); --*count == 0) owner.of_hosts_.unbind(of_);
  owner.requests_.destroy(*this);
}

// ---- the protocol ----

RequestReplyProtocol::RequestReplyProtocol(Host& host, std::string name, Protocol& below,
                                           const RequestReplyOptions& options)
    : Protocol(host, std::move(name)),
      options_(options),
      below_(below),
      last_xid_(options.first_xid != 0 ? options.first_xid - 1 : static_cast<std::uint32_t>(host.random())) {}

RequestReplyProtocol::~RequestReplyProtocol() {
  if (server_ != nullptr) below_.open_disable(*this, kBelow);
}

Result<SessionRef> RequestReplyProtocol::open(Protocol& high, const ParticipantSet& participants) {
  ParticipantSet whole = participants;
  whole.protocol = kBelow.protocol;
  Result<SessionRef> lower = below_.open(*this, whole);
  if (!lower) return lower;
  return SessionRef(new ClientEnd(*this, high, participants, std::move(*lower)));
}

Status RequestReplyProtocol::open_enable(Protocol& high, const ParticipantSet& /*participants*/) {
  if (server_ != nullptr && server_ != &high)
    return Error{Errc::name_taken, name() + ": " + server_->name() + " is served already"};
  if (server_ == nullptr)
    if (Status status = below_.open_enable(*this, kBelow); !status) return status;
  server_ = &high;
  return {};
}

void RequestReplyProtocol::open_disable(Protocol& high, const ParticipantSet& /*participants*/) noexcept {
  if (server_ != &high) return;
  server_ = nullptr;
  below_.open_disable(*this, kBelow);
}

void RequestReplyProtocol::demux(Session& lower, Message message) noexcept {
  const std::optional<Header> header = pop_header<Header>(message);
  if (!header) return dropped(counted.malformed);
  if (header->type == Type::call) return serve(lower, header->xid, std::move(message));
  ClientEnd** const call = calls_.resolve(header->xid);
  if (call == nullptr) return dropped(counted.duplicates);  // a second reply, or one too late
  header->type == Type::lost ? (*call)->lost(lower) : (*call)->pop(lower, std::move(message));
}

void RequestReplyProtocol::serve(Session& lower, std::uint32_t xid, Message&& request) noexcept {
  if (server_ == nullptr) return dropped(counted.no_session);
  ParticipantSet participants{kBelow.protocol, {}, lower.participants().remote};
  participants.local.host = host().address();
  participants.remote.host = peer_host(lower, lower.participants());
  const HostKey of{host().hash_seed(), participants.remote.host};
  std::size_t* count = of_hosts_.resolve(of);
  const std::size_t has = count != nullptr ? *count : 0;
  const bool room = has < options_.calls_per_host && shim::one_may_take(1, has, requests_.in_use(), options_.calls);
  if (room && count == nullptr) attempt([&] { count = &of_hosts_.bind(of, 0); });
  ServerEnd* const end = !room || count == nullptr || host().short_of_memory()
                             ? nullptr
                             : requests_.make(*this, *server_, participants, lower, xid, of);
  if (end == nullptr) {
    if (count != nullptr && *count == 0) of_hosts_.unbind(of);
    request.clear();
    no_reply(lower, xid, Errc::limit_reached);
    return dropped(counted.refused);
  }
  ++*count;
  ++counted.received;
  const SessionRef keep(end);
  server_->call_demux(*end, std::move(request));
}

/// A request or its reply is lost. Over datagrams the client sends the request again, so nothing is said. The client is
/// told if it would not send again (over a connection), or if the link cannot carry the reply.
void RequestReplyProtocol::no_reply(Session& lower, std::uint32_t xid, Errc why) noexcept {
  control::Connection connection;
  const bool repeats = control::ask(lower, connection) != Errc::ok || connection.number == 0;
  if (repeats && why != Errc::message_too_long) return;
  Message word(host().pool());
  if (push_header(Header{xid, Type::lost}, word)) (void)lower.push(std::move(word));
}

Errc RequestReplyProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, clients_ + requests_.in_use(), calls_.size())) return Errc::ok;
  // The layer below asks this. (If it were asked in turn, it would ask here again.)
  if (std::holds_alternative<control::AdvertisedMaximum>(request)) return Errc::not_supported;
  return less_header(below_.control(request), request, Header::kSize);
}

}  // namespace request_reply

ProtocolKind request_reply_kind() {
  ProtocolKind kind;
  kind.name = "REQUEST_REPLY";
  kind.summary = "pairs requests and replies, zero or more executions: Sun RPC's lowest layer";
  kind.gives = Service::transaction;
  kind.tells_ports_apart = true;
  kind.repeats = true;
  kind.below = {{"the protocol that carries the messages", Service::datagram}};
  kind.options = {
      {"give_up", OptionType::duration, "without a reply the call has failed; default 25s"},
      {"initial_timeout", OptionType::duration, "before the round trip has been measured; default 500ms"},
      {"minimum_timeout", OptionType::duration, "however short the round trip is; default 50ms"},
      {"longest_timeout", OptionType::duration, "with every second copy it is doubled, up to this; default 5s"},
      {"calls", OptionType::number, "that are being served: more are dropped; default 4096"},
      {"calls_per_host", OptionType::number, "the same for one host; default 1024"},
  };
  kind.make = [](const InstanceParts& parts) -> Result<std::unique_ptr<Protocol>> {
    RequestReplyOptions options;
    const Options& given = parts.options;
    options.give_up = given.duration("give_up", options.give_up);
    options.initial_timeout = given.duration("initial_timeout", options.initial_timeout);
    options.minimum_timeout = given.duration("minimum_timeout", options.minimum_timeout);
    options.longest_timeout = given.duration("longest_timeout", options.longest_timeout);
    options.calls = given.number("calls", options.calls);
    options.calls_per_host = given.number("calls_per_host", options.calls_per_host);
    for (const Duration time :
         {options.give_up, options.initial_timeout, options.minimum_timeout, options.longest_timeout})
      if (time < std::chrono::microseconds(1) || time > std::chrono::hours(24))
        return Error{Errc::invalid_argument, "the times must be from 1us to 24h"};
    if (options.calls == 0 || options.calls_per_host == 0)
      return Error{Errc::invalid_argument, "calls and calls_per_host must be at least 1"};
    return make_request_reply(parts.host, parts.name, *parts.below.front(), options);
  };
  return kind;
}

}  // namespace lrpc::netrpc
