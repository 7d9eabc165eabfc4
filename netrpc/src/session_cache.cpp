#include "lrpc/netrpc/session_cache.h"

namespace lrpc::netrpc {

HostAddress peer_host(Session& lower, const ParticipantSet& participants) {
  if (participants.remote.host.known()) return participants.remote.host;
  control::PeerHost peer;
  if (control::ask(lower, peer) == Errc::ok && peer.host.known()) return peer.host;
  if (!participants.remote.ethernet.known()) return {};
  control::ResolveReverse reverse{participants.remote.ethernet, {}};
  return control::ask(lower, reverse) == Errc::ok ? reverse.host : HostAddress{};
}

PeerKey peer_key(const Host& host, HostAddress peer, const ParticipantSet& participants, ProtocolNumber protocol) {
  return {host.hash_seed(), peer, peer.known() ? EthernetAddress{} : participants.remote.ethernet, protocol};
}

SessionCache::SessionCache(Host& host, std::size_t limit, Duration idle)
    : host_(host), limit_(limit), idle_(idle), sweep_([this] { sweep(); }) {}

CachedSession* SessionCache::find(const PeerKey& key) noexcept {
  const SessionRef* const found = sessions_.resolve(key);
  return found == nullptr ? nullptr : static_cast<CachedSession*>(found->get());
}

bool SessionCache::add(CachedSession& session, Origin origin) {
  const SessionRef keep(&session);
  if (host_.short_of_memory() || !make_room(origin)) return false;
  if (!sweep_.waiting()) host_.events().schedule(sweep_, idle_ / 2);
  session.slot_ = order_.size();
  order_.push_back(&session);
  try {
    sessions_.bind(session.key_, keep);
  } catch (...) {
    order_.pop_back();
    throw;
  }
  return true;
}

void SessionCache::remove(CachedSession& session) noexcept {
  order_.back()->slot_ = session.slot_;
  order_[session.slot_] = order_.back();
  order_.pop_back();
  sessions_.unbind(PeerKey(session.key_));  // a copy: this may be the last reference, and the session owns the key
}

void SessionCache::rekey(CachedSession& session, const PeerKey& key) {
  const SessionRef keep(&session);
  sessions_.unbind(PeerKey(session.key_));
  session.key_ = key;
  sessions_.bind(key, keep);
}

/// Peers that keep sending mark all their sessions as used: then drop_idle() makes room for a peer's session. It is not
/// called for a session that is opened here: some of the others may be in use right now.
bool SessionCache::make_room(Origin origin) noexcept {
  constexpr Duration kPause = std::chrono::milliseconds(10);
  const std::size_t limit = origin == Origin::of_peer ? limit_ - limit_ / 4 : limit_;
  if (order_.size() < limit || evict()) return true;
  if (origin == Origin::opened || host_.now() < may_drop_all_) return false;
  may_drop_all_ = host_.now() + kPause;
  drop_idle();
  return order_.size() < limit;
}

/// The clock algorithm: a session used since the hand last passed it is spared once. A busy session is not spared:
/// otherwise peers that send single fragments could keep all places.
bool SessionCache::evict() noexcept {
  constexpr int kTries = 16;
  for (int tries = 0; tries < kTries && !order_.empty(); ++tries) {
    if (hand_ >= order_.size()) hand_ = 0;
    CachedSession& session = *order_[hand_];
    if (session.references() == 1 && !session.used) {
      remove(session);
      return true;
    }
    session.used = false;
    ++hand_;
  }
  return false;
}

void SessionCache::sweep() noexcept {
  for (std::size_t at = order_.size(); at-- > 0;) {
    if (at >= order_.size()) continue;  // a dropped session may have dropped others
    CachedSession& session = *order_[at];
    if (session.references() == 1 && !session.used && !session.busy()) {
      remove(session);
      continue;
    }
    session.used = false;
    session.swept();
  }
  if (!order_.empty()) host_.events().schedule(sweep_, idle_ / 2);
}

void SessionCache::drop_idle() noexcept {
  for (std::size_t at = order_.size(); at-- > 0;) {
    if (at >= order_.size()) continue;
    CachedSession& session = *order_[at];
    if (session.references() == 1 && !session.busy()) remove(session);
  }
  if (order_.empty()) host_.events().cancel(sweep_);
}

}  // namespace lrpc::netrpc
