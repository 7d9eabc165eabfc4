// What arrives at CHANNEL. Another host has written all of it, so it is checked here before anything is changed.
#include "netrpc/protocols/channel/protocol.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::channel {

namespace flags = channel_flags;

void ChannelProtocol::demux(Session& lower, Message message) noexcept {
  const std::optional<ChannelHeader> popped = pop_header<ChannelHeader>(message);
  if (!popped || popped->length > message.size() || popped->boot_id == 0) [[unlikely]]
    return dropped(counted.malformed);
  const ChannelHeader& header = *popped;
  if (header.length != message.size()) [[unlikely]]
    message.truncate(header.length);

  switch (header.flags) {
    case flags::kRequest:
    case flags::kPleaseAck:
    case flags::kDoYouHave: input_request(lower, header, std::move(message)); return;
    case flags::kReply:
    case flags::kAck:
    case flags::kInProgress:
    case flags::kFail:
    case flags::kRebooted:
    case flags::kLacking:
    case flags::kBootAnswer: {
      // Meant for an earlier life of this host, which had other channels.
      if (header.peer_boot_id != host().boot_id()) [[unlikely]]
        return dropped(counted.refused);
      if (header.channel == 0 && header.flags == flags::kBootAnswer) [[unlikely]]
        return answered(lower, header);
      ClientChannel** const client = clients_.resolve(key(&lower, header.channel, header.protocol));
      if (client == nullptr) [[unlikely]]
        return dropped(counted.no_session);
      ++counted.received;
      return (*client)->pop(header, std::move(message));
    }
    case flags::kBootQuery:
      // A query leaves no state. If a known peer queries from a new life, this host sends it question() before the
      // answer, so that its request, which follows, is not dropped. (question() uses channel 0, and is only answered.)
      if (auto* const known = header.channel != 0 ? peers_.resolve(&lower) : nullptr;
          known != nullptr && (*known)->boot_id != 0 && (*known)->boot_id != header.boot_id)
        question(**known);
      return answer(lower, header, flags::kBootAnswer, Errc::ok);
    default: ++counted.malformed;
  }
}

void ChannelProtocol::input_request(Session& lower, const ChannelHeader& header, Message&& message) noexcept {
  // A request for another life of this host must not be executed in this one.
  if (header.peer_boot_id != host().boot_id()) [[unlikely]]
    return answer(lower, header, flags::kRebooted, Errc::call_failed);
  SessionRef* const known = servers_.resolve(key(&lower, header.channel, header.protocol));
  if (known == nullptr) [[unlikely]]
    return accept(lower, header, std::move(message));
  auto& channel = static_cast<ServerChannel&>(**known);
  if (channel.peer_->boot_id != header.boot_id) [[unlikely]]  // another life of the client
    return accept(lower, header, std::move(message));
  ++counted.received;
  channel.pop(header, std::move(message));
}

/// One client may come through two lower sessions, if the layers below do not know its host, or did not. Each of the
/// two peers knows only what came through its own session. Returns the other peer, if requests of `life` are recorded
/// there. (Two hosts may have drawn the same boot identifier, so hosts that are known are compared.)
ChannelPeer* ChannelProtocol::recorded_elsewhere(const ChannelPeer& peer, BootId life) noexcept {
  ChannelPeer** const at = recorded_.resolve({life, hash_seed_});
  if (at == nullptr || *at == &peer) return nullptr;
  return !(*at)->host.known() || !peer.host.known() || (*at)->host == peer.host ? *at : nullptr;
}

/// The first request of a channel that is not known, or of another life of the client.
void ChannelProtocol::accept(Session& lower, const ChannelHeader& header, Message&& message) noexcept {
  if (host().short_of_memory())
    return dropped(counted.refused);  // as if it had been lost: the client sends it again, and may find memory then
  if (peers_.resolve(&lower) == nullptr && peers_.size() >= options_.peers) {
    ++counted.refused;
    return answer(lower, header, flags::kFail, Errc::limit_reached);
  }
  ChannelPeer* known = nullptr;
  if (!attempt([&] { known = find_peer(lower); })) return dropped(counted.refused);
  ChannelPeer& peer = *known;
  if (ChannelPeer* const recorded = recorded_elsewhere(peer, header.boot_id)) {
    // Treat it as if it had come through the client's first session: that peer knows what was executed. Until both are
    // known to be the same host, it counts as lost.
    if (!peer.same_host(*recorded, options_)) return dropped(counted.refused);
    if (header.flags == flags::kRequest) recorded->other_way = SessionRef(&lower);
    return input_request(*recorded->lower, header, std::move(message));
  }
  if (!heard(peer, header.boot_id)) return;  // late: as if it had been lost
  if (header.flags == flags::kDoYouHave) return answer(lower, header, flags::kLacking, Errc::ok);
  if (header.flags != flags::kRequest)  // a probe for what has never arrived, or has been forgotten
    return answer(lower, header, flags::kFail, Errc::call_failed);
  Protocol** const high = enabled_.resolve(header.protocol);
  if (high == nullptr) {
    ++counted.no_session;
    return answer(lower, header, flags::kFail, Errc::not_supported);
  }
  // A channel is never forgotten to make room for a new one: its request could be executed twice. Requests of ended
  // lives that are still executed count, too; otherwise each life could leave as many behind.
  if (peer.servers.size() + *peer.abandoned >= options_.channels_per_peer) {
    ++counted.refused;
    return answer(lower, header, flags::kFail, Errc::limit_reached);
  }
  const ParticipantSet participants{
      header.protocol, {.host = host().address()}, {.host = peer.host, .channel = header.channel}};
  const SessionRef keep = make_server(**high, participants, peer, header.sequence);
  if (!keep) return dropped(counted.refused);
  auto* const channel = static_cast<ServerChannel*>(keep.get());
  list(*channel);
  if ((*high)->open_done(*channel, participants) != Errc::ok) {
    ++counted.refused;
    if (channel->peer_ != nullptr) drop(*channel);
    return answer(lower, header, flags::kFail, Errc::limit_reached);
  }
  ++counted.received;
  if (channel->peer_ != nullptr) channel->pop(header, std::move(message));
}

/// Null: there is no memory.
SessionRef ChannelProtocol::make_server(Protocol& high, const ParticipantSet& participants, ChannelPeer& peer,
                                        std::uint32_t sequence) noexcept {
  SessionRef made;
  const std::size_t place = peer.servers.size();
  const bool kept = attempt([&] {
    // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): attempt() handles it
    auto* const channel = new ServerChannel(*this, high, participants, peer, sequence);
    made = SessionRef(channel);
    channel->place = place;
    peer.servers.push_back(channel);
    servers_.bind(key_of(*channel, peer), made);
    if (recorded_.resolve({peer.boot_id, hash_seed_}) == nullptr) recorded_.bind({peer.boot_id, hash_seed_}, &peer);
  });
  if (kept) return made;
  peer.servers.resize(place);
  if (made) servers_.unbind(key_of(*made, peer));
  return {};
}

/// Sends a packet without data back to the sender of `request`.
void ChannelProtocol::answer(Session& lower, const ChannelHeader& request, std::uint16_t flag, Errc error) noexcept {
  const ChannelHeader header{.flags = flag,
                             .channel = request.channel,
                             .protocol = request.protocol,
                             .sequence = request.sequence,
                             .error = static_cast<std::uint16_t>(error),
                             .boot_id = host().boot_id(),
                             .peer_boot_id = request.boot_id};
  Message message(host().pool());
  if (!push_header(header, message)) return;
  ++counted.sent;
  (void)lower.push(std::move(message));  // if it cannot be sent it is lost, as on the way
}

}  // namespace lrpc::netrpc::channel
