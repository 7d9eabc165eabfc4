#include "netrpc/protocols/auth/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "netrpc/src/attempt.h"
#include "netrpc/src/dropped.h"
#include "netrpc/src/header_room.h"

namespace lrpc::netrpc::auth {

namespace {
constexpr std::int64_t kNudges = 32;                                ///< This many at once, ...
constexpr Duration kNudgeInterval = std::chrono::milliseconds(10);  ///< ... and then one in each interval.

/// Logs a notice about the host `about`, whose address may be forged.
void notice(Host& host, HostAddress about, std::string_view what) noexcept {
  host.notice([&] { return "host " + to_string(about) + " " + std::string(what); });
}

/// Whether the layer below says that the packet came from another host than `sender`.
bool elsewhere(const Session& lower, HostAddress sender) noexcept {
  return lower.peer().known() && lower.peer() != sender;
}

/// Reduces the sizes in the layer below's answer to `request` by AUTH's overhead. Returns `outcome`.
Errc without_overhead(Errc outcome, control::Request& request) noexcept {
  return less_header(outcome, request, kOverhead, Message::kMaxContiguous - kOverhead);
}
}  // namespace

// ---- sessions ----

AuthSession::AuthSession(AuthProtocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key,
                         Peer& peer)
    : CachedSession(protocol, high, participants, key), peer_(peer) {
  ++peer_.sessions;
}

AuthSession::~AuthSession() { --peer_.sessions; }

Errc AuthSession::push(Message message) noexcept {
  used = true;
  std::byte* const number = message.push(sizeof(ProtocolNumber));
  if (number == nullptr) return Errc::limit_reached;
  WireWriter(number).put(participants().protocol);
  return peer_.push(std::move(message));
}

void AuthSession::pop(Message message) noexcept {
  used = true;
  high().demux(*this, std::move(message));
}

Errc AuthSession::control(control::Request& request) noexcept {
  if (auto* const authenticated = std::get_if<control::Authenticated>(&request)) {
    authenticated->authenticated = peer_.has_key();
    authenticated->key_name = {};
    const std::string& name = peer_.key().name;
    std::copy_n(name.data(), std::min(name.size(), authenticated->key_name.size() - 1), authenticated->key_name.data());
    return Errc::ok;
  }
  if (control::answered(request, peer_.round_trip())) return Errc::ok;
  if (!std::holds_alternative<control::MaximumMessage>(request) &&
      !std::holds_alternative<control::OptimumMessage>(request))
    return Session::control(request);
  Session* const lower = peer_.lower();
  const Errc known = lower != nullptr ? lower->control(request) : Errc::host_unreachable;
  return known == Errc::ok ? without_overhead(known, request) : protocol().control(request);
}

// ---- the protocol ----

AuthProtocol::AuthProtocol(Host& host, std::string name, Protocol& below, AuthOptions options, KeyRing keys)
    : Protocol(host, std::move(name)),
      below_(below),
      options_(std::move(options)),
      keys_(std::move(keys)),
      nudges_(kNudges),
      nudges_counted_(host.now()),
      sweep_([this] { sweep(false); }),
      sessions_(host, options_.sessions, options_.idle) {}

AuthProtocol::~AuthProtocol() { below_.open_disable(*this, {protocol_numbers::kAuth, {}, {}}); }

Status AuthProtocol::enable_below() {
  return below_.open_enable(*this, {protocol_numbers::kAuth, {.host = host().address()}, {}});
}

Result<SessionRef> AuthProtocol::open(Protocol& high, const ParticipantSet& participants) {
  if (Status port = refuse_port(*this, participants); !port) return port.error();
  const HostAddress remote = participants.remote.host;
  if (!remote.known() || participants.protocol == 0)
    return Error{Errc::invalid_argument, name() + ": open needs the remote host and a protocol number"};
  const PeerKey session_key = peer_key(host(), remote, participants, participants.protocol);
  if (CachedSession* const cached = sessions_.find(session_key)) {
    if (&cached->high() != &high) return Error{Errc::name_taken, name() + ": another protocol uses this number"};
    cached->used = true;
    return SessionRef(cached);
  }
  const Key* const key = keys_.find(remote);
  if (key == nullptr) {
    notice(host(), remote, "is to be called, and there is no key for it here: add one to the file of keys");
    return Error{Errc::not_permitted, fmt::format("{}: there is no key for host {}; add one to {}", name(),
                                                  to_string(remote), options_.keys)};
  }
  learn_advertised(high);
  Peer* const peer = peer_of(remote, *key);
  if (peer == nullptr) return no_room(*this, "peers");
  if (Status opened = peer->open_lower(); !opened) return opened.error();
  auto* const session = new AuthSession(*this, high, participants, session_key, *peer);
  const SessionRef keep(session);
  if (!sessions_.add(*session, SessionCache::Origin::opened)) return no_room(*this, "sessions");
  return keep;
}

Status AuthProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (participants.protocol == 0)
    return Error{Errc::invalid_argument, name() + ": open_enable needs a protocol number"};
  if (Protocol* const* const other = enabled_.resolve(participants.protocol); other != nullptr && *other != &high)
    return Error{Errc::name_taken, fmt::format("{}: protocol {} is enabled already", name(), participants.protocol)};
  enabled_.bind(participants.protocol, &high);
  learn_advertised(high);
  return {};
}

void AuthProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  enabled_.unbind(participants.protocol, &high);
}

void AuthProtocol::learn_advertised(Protocol& high) noexcept {
  control::AdvertisedMaximum advertised;
  if (control::ask(high, advertised) == Errc::ok) advertised_ = std::max(advertised_, advertised.size);
}

Peer* AuthProtocol::peer_of(HostAddress remote, const Key& key) {
  if (std::unique_ptr<Peer>* const known = peers_.resolve(key_of(remote))) return known->get();
  if (peers_.size() >= options_.peers) {
    // Idle sessions keep their peers. To drop them takes long, and need not be done for each packet.
    if (host().now() >= may_drop_) {
      may_drop_ = host().now() + std::chrono::milliseconds(10);
      sessions_.drop_idle();
    }
    sweep(true);
  }
  if (peers_.size() >= options_.peers || host().short_of_memory()) return nullptr;
  auto made = std::make_unique<Peer>(*this, below_, counted, options_.settings, remote, key);
  made->last_used = host().now();
  if (!sweep_.waiting()) host().events().schedule(sweep_, options_.idle / 4);
  return peers_.bind(key_of(remote), std::move(made)).get();
}

/// A packet for which there is no memory is lost.
void AuthProtocol::demux(Session& lower, Message message) noexcept {
  if (!attempt([&] { input(lower, std::move(message)); })) ++counted.refused;
}

void AuthProtocol::input(Session& lower, Message message) {
  Message::Header<kLeast> head;
  message.pop(head);
  const std::optional<Prefix> prefix = head ? decode_prefix(head.bytes) : std::nullopt;
  if (!prefix || !prefix->ends.sender.known()) return dropped(counted.malformed);
  if (prefix->version != kVersion) {
    ++counted.refused;
    host().notice([&] {
      return fmt::format("host {} speaks version {} of AUTH, and this one version {}", to_string(prefix->ends.sender),
                         prefix->version, kVersion);
    });
    return;
  }
  // If the layer below knows the sender, it must be the one that the packet names, unless the sender's key may prove
  // it.
  const HostAddress sender = prefix->ends.sender;
  if (prefix->ends.receiver != host().address() || (elsewhere(lower, sender) && !options_.settings.anywhere))
    return dropped(counted.refused);
  if (prefix->type == Type::data) return data(lower, head.bytes, std::move(message));
  const Key* const key = keys_.find(sender);
  if (key == nullptr) {
    ++counted.refused;
    return notice(host(), sender, "wants to be heard, and there is no key for it here");
  }
  if (elsewhere(lower, sender) && !key->of_one_host()) {
    ++counted.refused;
    host().notice([&] {
      return fmt::format("host {} wants to be heard from {}, which takes a line and a key of its own: '{}' is not both",
                         to_string(sender), to_string(lower.peer()), key->name);
    });
    return;
  }
  handshake(lower, *prefix, *key, std::span<const std::byte, kLeast>(head.bytes, kLeast), message);
}

/// State is made only after the MAC has been checked. A packet that fails the check costs one keyed hash.
void AuthProtocol::handshake(Session& lower, const Prefix& prefix, const Key& key,
                             std::span<const std::byte, kLeast> head, const Message& rest) {
  const std::size_t size = prefix.type == Type::hello       ? Hello::kSize
                           : prefix.type == Type::challenge ? Challenge::kSize
                                                            : HelloReply::kSize;
  std::array<std::byte, HelloReply::kSize> packet;
  std::ranges::copy(head, packet.begin());
  if (rest.copy_to(std::span(packet).first(size).subspan(kLeast)) != size - kLeast) return dropped(counted.malformed);
  if (prefix.type == Type::hello) {
    const auto hello = decode_hello(packet.data(), key.mac);
    if (!hello) notice(host(), prefix.ends.sender, "wants to be heard, and does not have the key that is here for it");
    Peer* const peer = hello ? peer_of(prefix.ends.sender, key) : nullptr;
    if (peer == nullptr) return dropped(counted.refused);
    // A repeated HELLO from where the peer is not. The answer is longer than the HELLO, so it counts as a nudge.
    if (peer->accepted(*hello) && !peer->sends_through(lower) && !may_nudge()) return dropped(counted.duplicates);
    return peer->hello(*hello, lower);
  }
  // The other types are answers: without a peer there was no question.
  std::unique_ptr<Peer>* const peer = peers_.resolve(key_of(prefix.ends.sender));
  if (peer == nullptr) return dropped(counted.refused);
  if (prefix.type == Type::challenge) {
    if (const auto challenge = decode_challenge(packet.data(), key.mac)) return (*peer)->challenge(*challenge);
  } else if (const auto reply = decode_hello_reply(packet.data(), key.mac)) {
    return (*peer)->hello_reply(*reply, lower);
  }
  ++counted.refused;
}

void AuthProtocol::data(Session& lower, const std::byte* head, Message message) {
  const DataHeader header = decode_data(head);
  const HostAddress sender = header.ends.sender;
  std::unique_ptr<Peer>* const known = peers_.resolve(key_of(sender));
  Association* const association = known != nullptr ? (*known)->find(header.association) : nullptr;
  if (association == nullptr) {
    ++counted.refused;
    // A handshake of ours that goes to where the peer is tells it anyway.
    if (known == nullptr || !(*known)->handshaking() || !(*known)->sends_through(lower))
      nudge(lower, sender, header.association);
    return;
  }
  Peer& peer = **known;
  if (elsewhere(lower, sender) && !peer.key().of_one_host()) return dropped(counted.refused);
  if (peer.open(*association, header, head, message, lower)) deliver(peer, std::move(message));
}

/// Tells a host which association is not known here, because either host has lost it. Anybody can provoke such a nudge,
/// so it is rate-limited. It is signed, so that nobody else can send it, and shorter than the smallest sealed message
/// with its headers. A key that several hosts have signs no nudge to an address that is not the host's own.
void AuthProtocol::nudge(Session& lower, HostAddress remote, std::uint32_t association) noexcept {
  const Key* const key = keys_.find(remote);
  if (key == nullptr || (elsewhere(lower, remote) && !key->of_one_host()) || !may_nudge()) return;
  Challenge challenge;
  challenge.ends = {host().address(), remote};
  WireWriter(reinterpret_cast<std::byte*>(challenge.echo.data())).put(association);
  if (const std::unique_ptr<Peer>* const peer = peers_.resolve(key_of(remote)))
    challenge.challenge = (*peer)->challenge();
  Message message = message_of(challenge, key->mac, host().pool());
  if (!message.allocated()) return;
  ++counted.sent;
  (void)lower.push(std::move(message));
}

bool AuthProtocol::may_nudge() noexcept {
  const std::int64_t earned = (host().now() - nudges_counted_) / kNudgeInterval;
  nudges_ = std::min(kNudges, nudges_ + earned);
  nudges_counted_ += earned * kNudgeInterval;
  if (nudges_ <= 0) return false;
  --nudges_;
  return true;
}

void AuthProtocol::deliver(Peer& peer, Message message) {
  Message::Header<sizeof(ProtocolNumber)> packet;
  message.pop(packet);
  if (!packet) return dropped(counted.malformed);
  const auto number = WireReader(packet.bytes).get<ProtocolNumber>();
  if (number == 0) return;  // a confirmation, with no message
  const ParticipantSet participants{number, {.host = host().address()}, {.host = peer.host()}};
  const PeerKey key = peer_key(host(), peer.host(), participants, number);
  SessionRef session(sessions_.find(key));
  if (!session) {
    Protocol* const* const high = enabled_.resolve(number);
    if (high == nullptr) return dropped(counted.no_session);
    auto* const made = new AuthSession(*this, **high, participants, key, peer);
    session = SessionRef(made);
    if (!sessions_.add(*made, SessionCache::Origin::of_peer)) return dropped(counted.refused);
    if (made->high().open_done(*made, participants) != Errc::ok) {
      sessions_.remove(*made);
      return dropped(counted.refused);
    }
  }
  ++counted.received;
  static_cast<AuthSession&>(*session).pop(std::move(message));
}

Errc AuthProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size(), peers_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request)) {
    sessions_.drop_idle();
    sweep(true);
    return Errc::ok;
  }
  if (auto* const shares = std::get_if<control::SharesKey>(&request)) {
    shares->has_key = keys_.find(shares->host) != nullptr;
    const std::unique_ptr<Peer>* const peer = peers_.resolve(key_of(shares->host));
    shares->shown = peer != nullptr && (*peer)->associated();
    shares->no_cipher = peer != nullptr && (*peer)->no_cipher();
    return Errc::ok;
  }
  if (auto* const again = std::get_if<control::RereadKeys>(&request)) {
    auto keys = KeyRing::read(options_.keys);
    if (!keys && again->why != nullptr) *again->why = keys.error().message();
    if (!keys) return keys.code();
    again->keys = keys->size();
    keys_ = std::move(keys).value();
    peers_.for_each([this](const HostKey&, std::unique_ptr<Peer>& peer) { peer->rekeyed(keys_.find(peer->host())); });
    return Errc::ok;
  }
  if (advertised_ == 0 && std::holds_alternative<control::AdvertisedMaximum>(request)) return Errc::not_supported;
  if (control::answered(request, control::AdvertisedMaximum{advertised_ + kOverhead})) return Errc::ok;
  return without_overhead(below_.control(request), request);
}

/// Wipes associations and drops peers that are not needed any more. `everything`: also those that were used lately.
void AuthProtocol::sweep(bool everything) noexcept {
  const Time now = host().now();
  peers_.unbind_if([&](const HostKey&, const std::unique_ptr<Peer>& peer) {
    peer->sweep(everything);
    return peer->sessions == 0 && !peer->handshaking() && (everything || now - peer->last_used >= options_.idle);
  });
  if (peers_.empty()) {
    host().events().cancel(sweep_);
  } else if (!sweep_.waiting()) {
    host().events().schedule(sweep_, options_.idle / 4);
  }
}

}  // namespace lrpc::netrpc::auth
