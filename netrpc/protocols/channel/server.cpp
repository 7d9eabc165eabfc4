// The server's half of CHANNEL.
#include "lrpc/detail/shim/most_of_one.h"
#include "netrpc/protocols/channel/protocol.h"

namespace lrpc::netrpc::channel {

namespace flags = channel_flags;

ServerChannel::ServerChannel(ChannelProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                             ChannelPeer& peer, std::uint32_t sequence) noexcept
    : Session(protocol, high, participants), peer_(&peer), sequence_(sequence) {}

ServerChannel::~ServerChannel() {
  if (abandoned_ != nullptr) --*abandoned_;
}

ChannelProtocol& ServerChannel::channels() const noexcept { return static_cast<ChannelProtocol&>(protocol()); }

void ServerChannel::vanish() noexcept {
  let_go_of_reply();
  if (state_ == State::executing) {
    abandoned_ = peer_->abandoned;
    ++*abandoned_;
  }
  peer_ = nullptr;
}

void ServerChannel::pop(const ChannelHeader& header, Message&& message) noexcept {
  const std::int32_t newer = state_ == State::fresh ? 1 : ahead(header.sequence, sequence_);
  if (newer > 0 && header.flags != flags::kPleaseAck) [[likely]] {
    // Executing both would let one channel cause work without bound, and would mix up the two replies. The request is
    // not accepted, so the client sends it again.
    if (state_ == State::executing) return channels().answer(*peer_->lower, header, flags::kInProgress, Errc::ok);
    if (header.flags == flags::kDoYouHave) return channels().answer(*peer_->lower, header, flags::kLacking, Errc::ok);
    return execute(header.sequence, std::move(message));
  }
  ++channels().counted.duplicates;
  if (newer < 0) return;  // so old that nobody waits for it
  if (newer > 0)          // a probe for a request that has not arrived: the client has given it up
    return channels().answer(*peer_->lower, header, flags::kFail, Errc::call_failed);
  switch (state_) {
    case State::executing: send(flags::kAck, Errc::ok); return;
    case State::answered:
      channels().unused_.remove(*this);
      channels().list(*this);
      return send_reply();
    case State::too_long: send(flags::kFail, Errc::message_too_long); return;
    default: send(flags::kFail, Errc::call_failed);
  }
}

void ServerChannel::execute(std::uint32_t sequence, Message&& request) noexcept {
  channels().unused_.remove(*this);
  let_go_of_reply();  // the client has it, or it would not send another request
  sequence_ = sequence;
  state_ = State::executing;
  const SessionRef keep(this);
  high().call_demux(*this, std::move(request));
}

void ServerChannel::reply(Message message) noexcept {
  if (peer_ == nullptr || state_ != State::executing) return;  // nobody waits for it any more
  channels().list(*this);
  state_ = State::forgotten;
  Session* const way = peer_->way_of_reply(message.size() + ChannelHeader::kSize, channels().options_);
  if (way == nullptr) [[unlikely]]
    return push_reply(nullptr, {});
  if (message.pool() == nullptr) message = Message(channels().host().pool());
  // If memory is short, the reply is sent once or not at all. If it is lost, the client's probe is answered that the
  // call has failed.
  if (!push_header(flags::kReply, message, Errc::ok)) return;
  keep_reply(message);
  push_reply(way, std::move(message));
}

/// If no session carries the reply (any more), it can never arrive. The client is told so at once.
void ServerChannel::push_reply(Session* way, Message&& message) noexcept {
  ++channels().counted.sent;
  if (way != nullptr && way->push(std::move(message)) != Errc::message_too_long) return;
  if (peer_ == nullptr || state_ == State::executing) return;  // meanwhile dropped, or at the next request
  let_go_of_reply();
  state_ = State::too_long;
  send(flags::kFail, Errc::message_too_long);
}

/// Keeps the reply, but not beyond `memory`, nor beyond the peer's fair share of it. Otherwise peers that never
/// acknowledge could take all buffers of the host, or leave nothing to others.
void ServerChannel::keep_reply(const Message& reply) noexcept {
  const std::size_t cost = reply.footprint();
  std::size_t& all = channels().kept_;
  if (!shim::one_may_take(cost, peer_->kept, all, channels().options_.memory)) [[unlikely]]
    return;
  reply_ = reply.share();
  if (reply_.size() != reply.size()) [[unlikely]]
    return reply_.clear();
  all += kept_ = cost;
  peer_->kept += cost;
  state_ = State::answered;
}

void ServerChannel::let_go_of_reply() noexcept {
  channels().kept_ -= kept_;
  if (peer_ != nullptr) peer_->kept -= kept_;
  kept_ = 0;
  reply_.clear();
}

void ServerChannel::send_reply() noexcept {
  Message again = reply_.share();
  if (again.size() != reply_.size()) return;
  ++channels().counted.retransmissions;
  Session* const way = peer_->way_of_reply(again.size(), channels().options_);
  push_reply(way, std::move(again));
}

/// Sends a packet without data.
void ServerChannel::send(std::uint16_t flag, Errc error) noexcept {
  Message message(channels().host().pool());
  if (!push_header(flag, message, error)) return;
  ++channels().counted.sent;
  (void)peer_->lower->push(std::move(message));  // if it cannot be sent it is lost, as on the way
}

void ServerChannel::refuse(Errc reason) noexcept {
  if (peer_ == nullptr || state_ != State::executing) return;
  channels().list(*this);
  state_ = State::forgotten;
  send(flags::kFail, reason);
}

Errc ServerChannel::control(control::Request& request) noexcept {
  if (const auto* const why = std::get_if<control::Refuse>(&request)) return refuse(why->reason), Errc::ok;
  if (peer_ != nullptr) {
    peer_->look_at_sizes(channels().options_);
    if (auto* const maximum = std::get_if<control::MaximumMessage>(&request)) {
      maximum->size = peer_->longest_reply(channels().options_) - ChannelHeader::kSize;
      return Errc::ok;
    }
    if (control::answered(request, control::OptimumMessage{peer_->optimum - ChannelHeader::kSize})) return Errc::ok;
    if (auto* const asked = std::get_if<control::PeerHost>(&request)) {  // may be learnt after the session was made
      peer_->meet(channels().options_);
      asked->host = peer_->host;
      return Errc::ok;
    }
    if (std::holds_alternative<control::Authenticated>(request)) return peer_->lower->control(request);
  }
  return Session::control(request);
}

}  // namespace lrpc::netrpc::channel
