// Sessions that a protocol keeps by peer: found in constant time and dropped when idle. Their number is limited,
// because any host that sends a message creates one (RPC in the x-Kernel §5: "always to cache open sessions").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/protocol.h"

namespace lrpc::netrpc {

namespace control {
/// Asks `object`, a protocol or a session; on success `request` holds the answer, else it is untouched.
template <class Asked, class Object>
[[nodiscard]] Errc ask(Object& object, Asked& request) {
  Request any(request);
  const Errc outcome = object.control(any);
  if (outcome == Errc::ok) request = std::get<Asked>(any);
  return outcome;
}
/// The longest message that `below` (a protocol or a session) carries unfragmented. 0: it does not say.
template <class Object>
[[nodiscard]] std::size_t carried_uncut(Object& below) noexcept {
  OptimumMessage optimum;
  MaximumMessage maximum;
  if (ask(below, maximum) != Errc::ok) maximum.size = 0;
  if (ask(below, optimum) != Errc::ok || optimum.size == 0) return maximum.size;
  return maximum.size == 0 ? optimum.size : std::min(optimum.size, maximum.size);
}

}  // namespace control

/// One peer as one higher protocol sees it. `ethernet` is set only if the host is not known.
struct PeerKey {
  std::uint64_t seed = 0;  ///< Host::hash_seed(): peers choose the rest.
  HostAddress host;
  EthernetAddress ethernet;
  ProtocolNumber protocol = 0;

  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(seed, std::uint64_t{host.value} << 32 | protocol), ethernet.number());
  }
  friend bool operator==(const PeerKey& a, const PeerKey& b) noexcept {
    return a.host == b.host && a.protocol == b.protocol && a.ethernet == b.ethernet;
  }
};

/// The host at the other end of `lower`: from `participants`, else from the session, whose device may know which host
/// has the Ethernet address. Zero if neither knows it.
[[nodiscard]] HostAddress peer_host(Session& lower, const ParticipantSet& participants);
/// The key of that peer for `protocol`, given what peer_host() has found.
[[nodiscard]] PeerKey peer_key(const Host& host, HostAddress peer, const ParticipantSet& participants,
                               ProtocolNumber protocol);

/// A session that a SessionCache keeps.
class CachedSession : public Session {
 public:
  CachedSession(Protocol& protocol, Protocol& high, const ParticipantSet& participants, const PeerKey& key)
      : Session(protocol, high, participants), key_(key) {}
  [[nodiscard]] const PeerKey& key() const noexcept { return key_; }
  /// Set by every message that moves through the session: cheaper than reading the clock.
  bool used = false;

 protected:
  /// True while the session's own timers or saved messages need it: then it is not idle even if nobody refers to it.
  [[nodiscard]] virtual bool busy() const noexcept { return false; }
  /// Called by each sweep that keeps the session.
  virtual void swept() noexcept {}

 private:
  friend class SessionCache;
  PeerKey key_;
  std::size_t slot_ = 0;
};

/// Holds one reference to each session. Not thread-safe: under the host's monitor.
class SessionCache {
 public:
  /// `limit`: the most sessions at a time. `idle`: a session that nothing refers to is dropped when it has been unused
  /// for between half of this time and all of it. A sweep looks for such sessions, as long as there are sessions.
  SessionCache(Host& host, std::size_t limit, Duration idle);

  /// What causes a session to be made.
  enum class Origin : std::uint8_t {
    opened,   ///< A protocol above.
    of_peer,  ///< A peer's message: such sessions leave a quarter of the limit to opened ones.
  };

  [[nodiscard]] CachedSession* find(const PeerKey& key) noexcept;
  /// Keeps `session`. At the limit it drops a session that nothing refers to, preferably one that was not used lately.
  /// If a few tries find none and `origin` is of_peer, it calls drop_idle(), at most once in 10 ms. If that does not
  /// help, or the host is short of memory, it keeps nothing and returns false. O(1), except for drop_idle().
  [[nodiscard]] bool add(CachedSession& session, Origin origin);
  void remove(CachedSession& session) noexcept;
  /// Changes the key of `session`, which is kept here, to `key`, which no other session has.
  void rekey(CachedSession& session, const PeerKey& key);
  /// Drops the sessions that nothing refers to and that are not busy.
  void drop_idle() noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }

 private:
  bool make_room(Origin origin) noexcept;
  bool evict() noexcept;
  void sweep() noexcept;

  Host& host_;
  const std::size_t limit_;
  const Duration idle_;
  Map<PeerKey, SessionRef> sessions_;
  std::vector<CachedSession*> order_;
  std::size_t hand_ = 0;
  Time may_drop_all_{};
  Event sweep_;
};

}  // namespace lrpc::netrpc
