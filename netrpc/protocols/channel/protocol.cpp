#include "netrpc/protocols/channel/protocol.h"

#include <algorithm>

#include "lrpc/netrpc/session_cache.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::channel {

namespace {

constexpr std::size_t kMaximumData = 0xffff;  // `length` has 16 bits
constexpr int kSweepsPerReplyLife = 4;

/// The size that the layer below answers (header included); without an answer, the most that `length` can say.
template <class Size>
std::size_t ask_size(Session& lower) noexcept {
  Size asked;
  const bool answered = control::ask(lower, asked) == Errc::ok && asked.size > ChannelHeader::kSize;
  const std::size_t most = kMaximumData + ChannelHeader::kSize;
  return answered ? std::min(asked.size, most) : most;
}

/// Sweeps that together last at least `life`.
std::uint64_t epochs(Duration life, Duration period) noexcept {
  return static_cast<std::uint64_t>((life + period - Duration(1)) / period);
}

/// The most data that a message may have.
std::size_t most_data(const ChannelOptions& options) noexcept {
  return options.max_message == 0 ? kMaximumData : std::min(options.max_message, kMaximumData);
}

/// The part of `size` (header included) that the options allow.
std::size_t allowed(std::size_t size, const ChannelOptions& options) noexcept {
  return std::min(size, most_data(options) + ChannelHeader::kSize);
}

}  // namespace

ChannelPeer::ChannelPeer(SessionRef session, const ChannelOptions& options)
    : lower(std::move(session)),
      host(peer_host(*lower, lower->participants())),
      round_trip(options.initial_timeout, options.minimum_timeout, options.longest_pause()) {
  ended.reserve(1);  // learn() always has room for the last one
  ask_sizes(options);
}

void ChannelPeer::meet(const ChannelOptions& options) noexcept {
  if (host.known()) return;
  host = peer_host(*lower, lower->participants());
  if (host.known()) ask_sizes(options);
}

bool ChannelPeer::same_host(ChannelPeer& other, const ChannelOptions& options) noexcept {
  meet(options);
  other.meet(options);
  return host.known() && host == other.host;
}

void ChannelPeer::ask_sizes(const ChannelOptions& options) noexcept {
  path_changes.look(lower->protocol().host().peers(), host);
  maximum = ask_size<control::MaximumMessage>(*lower);
  optimum = std::min(ask_size<control::OptimumMessage>(*lower), maximum);
  maximum = allowed(maximum, options);
}

std::size_t ChannelPeer::longest_reply(const ChannelOptions& options) noexcept {
  meet(options);
  if (!other_way) return maximum;
  return std::max(maximum, allowed(ask_size<control::MaximumMessage>(*other_way), options));
}

bool ChannelPeer::push_header(const Session& channel, std::uint16_t flag, std::uint32_t sequence, Errc error,
                              Message& message) const noexcept {
  const ChannelHeader header{.flags = flag,
                             .channel = channel.participants().remote.channel,
                             .protocol = channel.participants().protocol,
                             .sequence = sequence,
                             .error = static_cast<std::uint16_t>(error),
                             .boot_id = channel.protocol().host().boot_id(),
                             .peer_boot_id = boot_id,
                             .length = static_cast<std::uint16_t>(message.size())};
  return netrpc::push_header(header, message);
}

bool ChannelPeer::has_ended(BootId life) const noexcept {
  return std::ranges::find(ended, life, &EndedLife::boot_id) != ended.end();
}

ChannelProtocol::ChannelProtocol(Host& host, std::string name, Protocol& below, const ChannelOptions& options)
    : Protocol(host, std::move(name)),
      options_(options),
      below_(below),
      hash_seed_(host.hash_seed()),
      next_sequence_(options.first_sequence),
      sweep_period_(std::max(std::min(options.reply_life, options.packet_life) / kSweepsPerReplyLife, Duration(1))),
      packet_epochs_(epochs(2 * options.packet_life + options.give_up, sweep_period_)),
      reply_epochs_(epochs(options.reply_life, sweep_period_)),
      sweep_([this] { sweep(); }),
      self_(std::make_shared<ChannelProtocol*>(this)) {
  host.peers().watch([self = std::weak_ptr(self_)](HostAddress peer, BootId /*before*/, BootId now) {
    if (const auto alive = self.lock()) (*alive)->host_rebooted(peer, now);
  });
}

ChannelProtocol::~ChannelProtocol() {
  self_.reset();
  while (!unused_.empty()) drop(*unused_.first());
  // The protocol above may still refer to channels that are executing. Their replies will go nowhere.
  peers_.for_each([this](const Session*, std::unique_ptr<ChannelPeer>& peer) {
    while (!peer->servers.empty()) drop(*peer->servers.back());
  });
}

Result<SessionRef> ChannelProtocol::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  ParticipantSet below = participants;
  below.protocol = protocol_numbers::kChannel;
  Result<SessionRef> lower = below_.open(*this, below);
  if (!lower) return lower;
  ChannelPeer* const peer = peer_to_call(**lower, participants.remote.host);
  if (!peer->host.known()) peer->host = participants.remote.host;
  // Another protocol may have learnt the peer's life meanwhile. Channels that are querying it then go on, too.
  if (peer->boot_id == 0 && peer->host.known()) learn(*peer, host().peers().boot_id(peer->host));

  ParticipantSet whole = participants;
  if (!pick_number(*peer, participants.protocol, whole.remote.channel))
    return Error{Errc::limit_reached,
                 participants.remote.channel != 0
                     ? name() + ": channel " + std::to_string(participants.remote.channel) + " is in use"
                     : name() + ": all channels to this host are in use"};
  return SessionRef(new ClientChannel(*this, high, whole, *peer, next_sequence_));
}

bool ChannelProtocol::pick_number(ChannelPeer& peer, ProtocolNumber protocol, std::uint16_t& number) {
  const auto in_use = [&](std::uint16_t candidate) {
    return clients_.resolve(key(peer.lower.get(), candidate, protocol)) != nullptr;
  };
  if (number != 0) return !in_use(number);
  while (!peer.free_numbers.empty()) {
    number = peer.free_numbers.back();
    peer.free_numbers.pop_back();
    if (!in_use(number)) return true;  // else somebody has opened this very number
  }
  for (; peer.next_number != 0; ++peer.next_number) {
    if (in_use(peer.next_number)) continue;
    number = peer.next_number++;
    return true;
  }
  number = 0;
  return false;
}

void ChannelProtocol::closed(ClientChannel& channel, ChannelPeer& peer, std::uint64_t sequence) noexcept {
  const ChannelKey gone = key_of(channel, peer);
  clients_.unbind(gone);
  next_sequence_ = std::max(next_sequence_, sequence + 1);
  peer.clients.back()->place = channel.place;
  peer.clients[channel.place] = peer.clients.back();
  peer.clients.pop_back();
  peer.called = epoch_;
  // Only numbers below next_number are put back: a higher one was opened by its number, and next_number will reach it.
  if (gone.channel < peer.next_number || peer.next_number == 0)
    if (peer.free_numbers.size() < 0xffff) attempt([&] { peer.free_numbers.push_back(gone.channel); });
}

Status ChannelProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (Protocol** const known = enabled_.resolve(participants.protocol); known != nullptr && *known != &high)
    return Error{Errc::name_taken,
                 name() + ": protocol " + std::to_string(participants.protocol) + " is enabled already"};
  if (enabled_.empty())
    if (Status status = below_.open_enable(*this, {protocol_numbers::kChannel, {}, {}}); !status) return status;
  enabled_.bind(participants.protocol, &high);
  return {};
}

void ChannelProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  if (enabled_.unbind(participants.protocol, &high) && enabled_.empty())
    below_.open_disable(*this, {protocol_numbers::kChannel, {}, {}});
}

ChannelPeer* ChannelProtocol::find_peer(Session& lower) {
  if (auto* const known = peers_.resolve(&lower)) return known->get();
  if (!sweep_.waiting()) host().events().schedule(sweep_, sweep_period_);
  return peers_.bind(&lower, std::make_unique<ChannelPeer>(SessionRef(&lower), options_)).get();
}

/// A layer below that hands out sessions of other protocols (VIPaddr) may now use another one. But a server accepts one
/// client's requests only through the session through which the first one came. So this host keeps to its old session
/// as long as the server remembers that.
ChannelPeer* ChannelProtocol::peer_to_call(Session& lower, HostAddress host) {
  if (!host.known()) return find_peer(lower);  // known by its device address: only one session leads to it
  const HostKey key{hash_seed_, host};
  ChannelPeer** const known = called_.resolve(key);
  if (known != nullptr && &(*known)->lower->protocol() != &lower.protocol()) return *known;
  ChannelPeer* const peer = find_peer(lower);
  if (known != nullptr && *known == peer) return peer;
  if (std::ranges::find(peer->called_as, host) == peer->called_as.end()) peer->called_as.push_back(host);
  return called_.bind(key, peer);
}

void ChannelProtocol::forget_calls_to(const ChannelPeer& peer) noexcept {
  for (const HostAddress host : peer.called_as) called_.unbind({hash_seed_, host}, &peer);
}

bool ChannelProtocol::heard(ChannelPeer& peer, BootId boot_id) noexcept {
  if (peer.boot_id == boot_id) return true;
  if (!may_begin(peer, boot_id)) return false;
  if (peer.boot_id == 0) {  // through this session; another session or another protocol may know the host's life
    const BootId known = peer.host.known() ? host().peers().boot_id(peer.host) : 0;
    if (known == 0 || known == boot_id) return believe(peer, boot_id), true;
  }
  // One packet with an address that may be forged must not end a life: the host at that address is asked.
  ++counted.refused;
  question(peer);
  return false;
}

bool ChannelProtocol::may_begin(const ChannelPeer& peer, BootId boot_id) noexcept {
  // Forgetting one of the ended lives would let its late packets be executed again. No honest host has so many.
  if (!peer.has_ended(boot_id) && (peer.boot_id == 0 || peer.ended.size() < ChannelPeer::kMostEnded)) return true;
  return dropped(counted.refused, false);
}

void ChannelProtocol::believe(ChannelPeer& peer, BootId boot_id) noexcept {
  if (peer.host.known()) host().peers().heard(peer.host, boot_id);  // calls host_rebooted() if the life has changed
  learn(peer, boot_id);
}

void ChannelProtocol::question(ChannelPeer& peer) noexcept {
  while (peer.question == 0) peer.question = static_cast<std::uint32_t>(host().random());
  answer(*peer.lower, {.sequence = peer.question, .boot_id = peer.boot_id}, channel_flags::kBootQuery, Errc::ok);
}

void ChannelProtocol::answered(Session& lower, const ChannelHeader& header) noexcept {
  std::unique_ptr<ChannelPeer>* const known = peers_.resolve(&lower);
  if (known == nullptr || (*known)->question == 0 || (*known)->question != header.sequence)
    return dropped(counted.refused);
  ChannelPeer& peer = **known;
  peer.question = 0;
  if (peer.boot_id != header.boot_id && may_begin(peer, header.boot_id)) believe(peer, header.boot_id);
}

void ChannelProtocol::learn(ChannelPeer& peer, BootId boot_id) noexcept {
  if (peer.boot_id == boot_id || peer.has_ended(boot_id)) return;
  const BootId before = std::exchange(peer.boot_id, boot_id);
  peer.answers_questions = false;
  ++learning_;
  if (before != 0) {
    // If another protocol has reported the life, the list may be full; or there is no memory for a longer one. Forget
    // the oldest life, whose packets are the least likely to come.
    if (peer.ended.size() == ChannelPeer::kMostEnded ||
        !attempt([&peer] { peer.ended.reserve(peer.ended.size() + 1); })) {
      forget_life(peer, peer.ended.front().boot_id);
      peer.ended.erase(peer.ended.begin());
    }
    peer.ended.push_back({before, host().now() + options_.packet_life});
    peer.other_way = {};
    while (!peer.servers.empty()) drop(*peer.servers.back());
  }
  // One at a time: transactions that complete may open, close and call.
  for (;;) {
    const auto client = std::ranges::find_if(peer.clients, &ClientChannel::outdated);
    if (client == peer.clients.end()) break;
    const SessionRef keep(*client);
    (*client)->follow_life();
  }
  --learning_;
}

void ChannelProtocol::host_rebooted(HostAddress rebooted, BootId now) noexcept {
  // One at a time: learn() may make peers.
  for (ChannelPeer* outdated = nullptr;; outdated = nullptr) {
    peers_.for_each([&](const Session*, const std::unique_ptr<ChannelPeer>& peer) {
      if (peer->host == rebooted && peer->boot_id != now && !peer->has_ended(now)) outdated = peer.get();
    });
    if (outdated == nullptr) return;
    learn(*outdated, now);
  }
}

Errc ChannelProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, clients_.size() + servers_.size(), peers_.size())) return Errc::ok;
  if (control::answered(request, control::AdvertisedMaximum{most_data(options_) + ChannelHeader::kSize}))
    return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) {
    // Unlike the sweep, this also forgets channels whose packets may still be under way.
    while (!unused_.empty()) drop(*unused_.first());
    drop_unused_peers(true);
    return below_.control(request);
  }
  return less_header(below_.control(request), request, ChannelHeader::kSize, most_data(options_));
}

}  // namespace lrpc::netrpc::channel
