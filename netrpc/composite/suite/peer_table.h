// What micro-protocols know of peers: a state for each peer, or for each of its flows. An idle state is dropped. Any
// sender of a message makes a state, so a table has a limit, and each host its fair share of that.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lrpc/netrpc/host.h"
#include "lrpc/netrpc/map.h"
#include "netrpc/composite/bag.h"
#include "netrpc/src/attempt.h"
#include "netrpc/src/silence.h"

namespace lrpc::netrpc::composite {

/// The peer at the other end of an item's session, for one protocol above.
struct Peer {
  std::uint64_t seed = 0;  ///< Host::hash_seed(), because peers choose the rest.
  HostAddress host;
  EthernetAddress ethernet;
  std::uint16_t port = 0;
  ProtocolNumber protocol = 0;

  static Peer of(const Host& host, const Item& item) noexcept { return of(host, *item.session()); }
  static Peer of(const Host& host, const Session& session) noexcept {
    const ParticipantSet& both = session.participants();
    const EthernetAddress ethernet = both.remote.host.known() ? EthernetAddress{} : both.remote.ethernet;
    return {host.hash_seed(), both.remote.host, ethernet, both.remote.port, both.protocol};
  }
  [[nodiscard]] std::uint64_t hash() const noexcept {
    return mix(mix(seed, std::uint64_t{host.value} << 32 | protocol), std::uint64_t{port} << 48 | ethernet.number());
  }
  /// Also for a host that is known by its Ethernet address only.
  [[nodiscard]] HostKey key_of_host() const noexcept {
    if (host.known()) return {seed, host};
    return {mix(seed, ethernet.number()), {}};
  }
  friend bool operator==(const Peer&, const Peer&) = default;
};
/// The host of a table's key, which is a Peer or a Flow.
[[nodiscard]] inline HostKey host_of(const Peer& peer) noexcept { return peer.key_of_host(); }

/// A peer's messages that NUMBER counts together. A peer that has restarted, or has forgotten this host, begins
/// another.
struct Flow {
  Peer peer;
  std::uint32_t stream = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(peer.hash(), stream); }
  friend bool operator==(const Flow&, const Flow&) = default;
};
[[nodiscard]] inline HostKey host_of(const Flow& flow) noexcept { return flow.peer.key_of_host(); }

/// `State`: begins as State{}. While its `bool busy() const noexcept` is true, an idle one is kept, too. Under the
/// monitor.
template <class Key, class State>
class PeerTable {
 public:
  /// `idle`: a state that is not used is dropped after this time at the earliest, after twice as long at the latest.
  /// `receiver`: it is what a receiver remembers. That stays for longer after a pause of this host, because copies of
  /// what it has received may wait to be read. A sender forgets all the same: its receivers do, too.
  PeerTable(Host& host, std::size_t most, Duration idle, bool receiver)
      : host_(host),
        most_(most),
        idle_(std::clamp<Duration>(idle, kLeastIdle, kMostIdle)),
        receiver_(receiver),
        sweep_([this] { sweep(); }) {}

  /// Null: there is none. Valid until the next state is made or dropped; so look it up again after raising an event.
  [[nodiscard]] State* find(const Key& peer) noexcept {
    Entry* const known = states_.resolve(peer);
    if (known == nullptr) return nullptr;
    known->used = true;
    return &known->state;
  }
  /// Makes a state if there is none. Null: the table is full, the host has its share, or there is no memory.
  [[nodiscard]] State* find_or_make(const Key& peer) noexcept {
    if (State* const known = find(peer)) return known;
    if (!shares_.has_room(host_of(peer), 1, most_) || host_.short_of_memory()) return nullptr;
    HostShares::Part part = shares_.take(host_of(peer), 1);
    if (!part) return nullptr;
    State* made = nullptr;
    attempt([&] {
      if (!sweep_.waiting()) host_.events().schedule(sweep_, idle_);
      made = &states_.bind(peer, Entry{State{}, true, std::move(part)}).state;
    });
    return made;
  }
  [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }

 private:
  static constexpr Duration kLeastIdle = std::chrono::milliseconds(1);
  static constexpr Duration kMostIdle = std::chrono::hours(24 * 365 * 10);
  struct Entry {
    State state{};
    bool used = true;
    HostShares::Part part{};
  };
  void sweep() {
    if (!receiver_ || !stood_still(host_.now(), sweep_.due()))
      states_.unbind_if(
          [](const Key&, Entry& entry) { return !std::exchange(entry.used, false) && !entry.state.busy(); });
    if (!states_.empty()) host_.events().schedule(sweep_, idle_);
  }

  Host& host_;
  const std::size_t most_;
  const Duration idle_;
  const bool receiver_;
  HostShares shares_;
  Map<Key, Entry> states_;
  Event sweep_;
};

}  // namespace lrpc::netrpc::composite
