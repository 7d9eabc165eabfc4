#include "netrpc/protocols/mrpc/protocol.h"

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::mrpc {

namespace {
constexpr ParticipantSet kBelow{protocol_numbers::kMonolithic, {}, {}};
constexpr std::size_t kLargestPacket = 1500;  // the paper: Sprite RPC never sends a message greater than 1500 bytes

/// The longest packet to send through `below`, a protocol or a session.
template <class Object>
std::size_t longest_packet(Object& below) noexcept {
  control::OptimumMessage optimum;
  return control::ask(below, optimum) == Errc::ok ? std::min(optimum.size, kLargestPacket) : kLargestPacket;
}

std::size_t data_of(std::size_t packet) noexcept { return packet > Header::kSize ? packet - Header::kSize : 1; }
}  // namespace

Monolithic::Monolithic(Host& host, std::string name, Protocol& lower, Settings settings)
    : Protocol(host, std::move(name)),
      lower_(lower),
      settings_(settings),
      sequence_(settings.sequence),
      server_(*this),
      sweep_timer_([this] { sweep(false); }),
      self_(std::make_shared<Monolithic*>(this)) {
  host.peers().watch([self = std::weak_ptr(self_)](HostAddress peer, BootId /*before*/, BootId now) {
    const auto alive = self.lock();  // watchers stay as long as the host does
    if (alive == nullptr) return;
    if (auto* const known = (*alive)->peers_.resolve({(*alive)->host().hash_seed(), peer})) (*known)->rebooted(now);
  });
}

Monolithic::~Monolithic() {
  if (enabled_below_) lower_.open_disable(*this, kBelow);
}

Result<SessionRef> Monolithic::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  const HostAddress host = participants.remote.host;
  if (!host.known()) return Error{Errc::invalid_argument, name() + ": which host?"};
  const CommandSessionKey key{host, participants.remote.command, &high};
  if (ClientSession** const known = sessions_.resolve(key)) return SessionRef(*known);
  auto* peer = peers_.resolve({this->host().hash_seed(), host});
  if (peer == nullptr) {
    if (Status status = enable_below(); !status) return status.error();
    const Participant remote{.host = host, .ethernet = participants.remote.ethernet};
    Result<SessionRef> lower = lower_.open(*this, {kBelow.protocol, {}, remote});
    if (!lower) return lower.error();
    start_sweeping();  // first: it may throw
    peer = &peers_.bind({this->host().hash_seed(), host}, std::make_unique<ClientPeer>(*this, host, std::move(*lower)));
  }
  SessionRef session(new ClientSession(*this, high, participants, **peer));
  sessions_.bind(key, static_cast<ClientSession*>(session.get()));
  return session;
}

/// Clients need it, too: a peer's answer may come by another path than this host's packets (VIP).
Status Monolithic::enable_below() {
  if (enabled_below_) return {};
  Status status = lower_.open_enable(*this, kBelow);
  enabled_below_ = status.has_value();
  return status;
}

Status Monolithic::open_enable(Protocol& high, const ParticipantSet& participants) {
  const std::uint16_t key = participants.local.command;
  if (Protocol** const known = enabled_.resolve(key); known != nullptr && *known != &high)
    return Error{Errc::name_taken, name() + ": command " + std::to_string(key) + " is served already"};
  if (Status status = enable_below(); !status) return status;
  enabled_.bind(key, &high);
  return {};
}

void Monolithic::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  enabled_.unbind(participants.local.command, &high);
}

void Monolithic::demux(Session& lower, Message message) noexcept {
  const std::optional<Header> header = pop_header<Header>(message);
  if (!header || message.size() < header->size || header->boot_id == 0) return dropped(counted.malformed);
  message.truncate(header->size);
  switch (header->type) {
    case Type::request:
    case Type::reply_ack:
    case Type::query: return demux_to_server(lower, *header, std::move(message));
    case Type::reply:
    case Type::request_ack:
    case Type::life:
    case Type::rebooted: return demux_to_client(lower, *header, std::move(message));
  }
  ++counted.malformed;
}

void Monolithic::demux_to_client(Session& lower, const Header& header, Message&& message) noexcept {
  // Drop what is for another host, or for another life of this host.
  if (header.client != host().address() || header.peer_boot_id != host().boot_id()) return dropped(counted.no_session);
  if (lower.peer() != header.server && lower.peer().known()) return dropped(counted.refused);
  auto* const peer = peers_.resolve({host().hash_seed(), header.server});
  if (peer == nullptr) return dropped(counted.no_session);
  if (header.type == Type::reply) [[likely]]
    return (*peer)->on_reply(header, std::move(message));
  if (header.type == Type::request_ack) return (*peer)->on_ack(header);
  if (header.type == Type::life) return (*peer)->on_life(header);
  (*peer)->on_rebooted(header);
}

void Monolithic::demux_to_server(Session& lower, const Header& header, Message&& message) noexcept {
  if (header.server != host().address()) return dropped(counted.no_session);
  if (lower.peer() != header.client && lower.peer().known()) return dropped(counted.refused);
  if (header.type == Type::query || header.peer_boot_id != host().boot_id()) return answer_query(lower, header);
  // Only a packet that names this life makes records. That keeps out packets for an earlier life. It proves nothing
  // about the sender: any host that asks is told this life, and addresses can be forged.
  if (header.type == Type::request) [[likely]]
    return server_.on_request(lower, header, std::move(message));
  server_.on_reply_ack(header);
}

/// Tells the present life to a host that asks, or that names another life.
void Monolithic::answer_query(Session& lower, const Header& header) noexcept {
  Header answer = header;
  answer.type = header.type == Type::query ? Type::life : Type::rebooted;
  answer.bits = 0;
  answer.mask = 0;
  answer.size = answer.offset = 0;
  answer.boot_id = host().boot_id();
  answer.peer_boot_id = header.boot_id;
  send(lower, answer);
}

Errc Monolithic::try_send(Session& lower, const Header& header, Message message) noexcept {
  if (!push_header(header, message)) return Errc::limit_reached;
  ++counted.sent;
  return lower.push(std::move(message));
}

std::size_t Monolithic::single(Session& lower) noexcept { return data_of(longest_packet(lower)); }

Errc Monolithic::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size(), peers_.size() + server_.records())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) {
    sweep(true);
    return Errc::ok;
  }
  const std::size_t packet = longest_packet(lower_);
  if (control::answered(request, control::AdvertisedMaximum{packet})) return Errc::ok;
  const std::size_t data = data_of(packet);
  if (control::answered(request, control::MaximumMessage{longest(data)})) return Errc::ok;
  if (control::answered(request, control::OptimumMessage{data})) return Errc::ok;
  return lower_.control(request);
}

/// `now`: drops all idle peers; otherwise those that were idle since the last sweep. Records that at-most-once depends
/// on stay in any case.
void Monolithic::sweep(bool now) noexcept {
  server_.sweep(!now);
  peers_.unbind_if([&](const HostKey& key, std::unique_ptr<ClientPeer>& peer) {
    const bool goes = peer->idle() && (now || !peer->used);
    peer->used = false;
    if (goes && !server_.knows(key.host)) host().peers().forget(key.host);
    return goes;
  });
  if (peers_.empty() && server_.records() == 0) {
    host().events().cancel(sweep_timer_);
  } else {
    start_sweeping();
  }
}

}  // namespace lrpc::netrpc::mrpc
