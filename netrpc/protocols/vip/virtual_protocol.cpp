#include "netrpc/protocols/vip/virtual_protocol.h"

namespace lrpc::netrpc::vip {

VirtualSession::VirtualSession(VirtualProtocol& protocol, Protocol& high, const ParticipantSet& participants,
                               const PeerKey& key)
    : CachedSession(protocol, high, participants, key) {
  if (!key.host.known()) ++protocol.strangers_;
}

VirtualSession::~VirtualSession() {
  auto& all = static_cast<VirtualProtocol&>(protocol());
  if (stranger_.ethernet.known()) all.met_.unbind(stranger_);
  if (!key().host.known()) --all.strangers_;
}

/// Enables the protocols below, for openers, too: the peer's answers may come through another one than this host's
/// messages.
Status VirtualProtocol::hear(ProtocolNumber number) {
  if (Number* const known = numbers_.resolve(number); known != nullptr && known->heard) return {};
  if (auto enabled = enable_below(number); !enabled) return enabled;
  Number* known = numbers_.resolve(number);
  if (known == nullptr) known = &numbers_.bind(number, {});
  known->heard = true;
  return {};
}

Result<SessionRef> VirtualProtocol::open(Protocol& high, const ParticipantSet& participants) {
  if (!participants.remote.host.known())
    return Error{Errc::invalid_argument, name() + " needs the host address of the peer"};
  const PeerKey key = peer_key(host(), participants.remote.host, participants, participants.protocol);
  if (VirtualSession* const known = find(key)) {
    if (&known->high() != &high) return Error{Errc::name_taken, name() + ": another protocol uses this number"};
    known->used = true;
    const SessionRef keep(known);
    if (const Errc outcome = known->choose(); outcome != Errc::ok) return outcome;
    return keep;
  }
  // Other errors do no harm: opening below then fails, too, or answers come through the session that is opened.
  if (auto heard = hear(participants.protocol); heard.code() == Errc::invalid_argument) return heard.error();
  Number* number = numbers_.resolve(participants.protocol);
  if (number == nullptr) number = &numbers_.bind(participants.protocol, {});
  number->opened = true;
  VirtualSession* const made = make_session(high, participants, key);
  SessionRef session(made);
  if (const Errc outcome = made->choose(); outcome != Errc::ok)
    return Error{outcome, name() + ": " + to_string(participants.remote.host) + ": " + std::string(describe(outcome))};
  if (!sessions_.add(*made, SessionCache::Origin::opened)) return no_room(*this, "sessions");
  return session;
}

Status VirtualProtocol::open_enable(Protocol& high, const ParticipantSet& participants) {
  if (const Number* const known = numbers_.resolve(participants.protocol);
      known != nullptr && known->high != nullptr && known->high != &high)
    return Error{Errc::name_taken, name() + ": another protocol has enabled this number"};
  if (auto heard = hear(participants.protocol); !heard) return heard;
  numbers_.resolve(participants.protocol)->high = &high;
  return {};
}

void VirtualProtocol::open_disable(Protocol& high, const ParticipantSet& participants) noexcept {
  Number* const known = numbers_.resolve(participants.protocol);
  if (known == nullptr || known->high != &high) return;
  known->high = nullptr;
  if (known->opened) return;
  disable_below(participants.protocol);
  numbers_.unbind(participants.protocol);
}

VirtualSession* VirtualProtocol::find(const PeerKey& key) {
  if (CachedSession* const known = sessions_.find(key)) return static_cast<VirtualSession*>(known);
  if (!key.host.known()) {
    VirtualSession** const met = met_.resolve(key);
    return met == nullptr ? nullptr : *met;
  }
  if (strangers_ == 0) return nullptr;
  control::Request request = control::Resolve{key.host, {}};
  if (control_below(request) != Errc::ok) return nullptr;
  const PeerKey stranger{key.seed, {}, std::get<control::Resolve>(request).ethernet, key.protocol};
  auto* const session = static_cast<VirtualSession*>(sessions_.find(stranger));
  if (session != nullptr) meet(*session, stranger, key);
  return session;
}

void VirtualProtocol::meet(VirtualSession& session, const PeerKey& stranger, const PeerKey& key) {
  session.stranger_ = stranger;
  session.mutable_participants().remote.host = key.host;
  sessions_.rekey(session, key);
  met_.bind(stranger, &session);
  --strangers_;
}

bool VirtualProtocol::recognise(VirtualSession& session) {
  const HostAddress peer = peer_of(session, session.participants());
  if (!peer.known()) return false;
  const PeerKey stranger = session.key();
  const PeerKey key = peer_key(host(), peer, session.participants(), stranger.protocol);
  if (sessions_.find(stranger) != &session || sessions_.find(key) != nullptr) return false;
  meet(session, stranger, key);
  return true;
}

VirtualSession* VirtualProtocol::session_of(Session& lower, const ParticipantSet& from, Errc& refusal) {
  const HostAddress peer = peer_of(lower, from);
  const PeerKey key = peer_key(host(), peer, from, from.protocol);
  if (VirtualSession* const known = find(key)) {
    known->attach(lower);
    return known;
  }
  const Number* const number = numbers_.resolve(from.protocol);
  if (number == nullptr || number->high == nullptr) {
    ++counted.no_session;
    refusal = Errc::not_permitted;
    return nullptr;
  }
  Protocol& high = *number->high;
  ParticipantSet participants = from;
  participants.remote.host = peer;
  VirtualSession* const made = make_session(high, participants, key);
  const SessionRef session(made);
  refusal = Errc::limit_reached;
  if (sessions_.add(*made, SessionCache::Origin::of_peer)) {
    made->attach(lower);
    static_cast<void>(made->choose());  // one lower session is there: a message has come through it
    refusal = high.open_done(*made, participants);
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDelete): sessions_ refers to it, too
    if (refusal == Errc::ok) return made;
    sessions_.remove(*made);
  }
  ++counted.refused;
  return nullptr;
}

void VirtualProtocol::demux(Session& lower, Message message) noexcept {
  auto* session = static_cast<VirtualSession*>(lower.above);
  if (session == nullptr) [[unlikely]] {
    Errc refusal = Errc::ok;
    session = session_of(lower, lower.participants(), refusal);
    if (session == nullptr) return;
  }
  session->used = true;
  ++counted.received;
  session->pop(std::move(message));
}

Errc VirtualProtocol::control(control::Request& request) noexcept {
  if (told_statistics(request, sessions_.size())) return Errc::ok;
  if (std::holds_alternative<control::DropIdle>(request) || std::holds_alternative<control::MakeRoom>(request)) {
    sessions_.drop_idle();
    return Errc::ok;
  }
  return control_below(request);
}

}  // namespace lrpc::netrpc::vip
