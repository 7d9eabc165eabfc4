// ACK's sender: the messages that have been sent and not been acknowledged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/suite/flight.h"
#include "netrpc/composite/suite/suite.h"
#include "netrpc/composite/suite/window.h"
#include "netrpc/src/attempt.h"

namespace lrpc::netrpc::composite {

/// A message that has been sent.
struct Sent {
  Flow flow;
  std::uint64_t number = 0;
  [[nodiscard]] std::uint64_t hash() const noexcept { return mix(flow.hash(), number); }
  friend bool operator==(const Sent&, const Sent&) = default;
};

/// Keeps a copy of each message until it is forgotten, and retransmits it with growing pauses; `tries` transmissions at
/// most. Under the monitor. Work of each operation: constant, plus the flow's numbers that are no longer under way.
class Unacknowledged {
 public:
  /// `parts`: ACK's, with its options. `timeout`: raised when a message's pause is over; its handler calls timed_out().
  Unacknowledged(MicroParts& parts, const Raisable<Sent>* timeout)
      : parts_(parts),
        timeout_(timeout),
        interval_(parts.options.duration("interval", std::chrono::milliseconds(50))),
        tries_(parts.options.number("tries", 8)),
        most_(parts.options.number("most", 1024)),
        window_(parts.options.number("window", 128)),
        memory_(parts.options.number("memory", 16 << 20)),
        repeats_(std::max(regular_time(interval_, tries_),
                          parts.options.duration("idle", std::chrono::seconds(60)) * kReceiversRemember / 2)),
        flights_(peer_table<Flow, Flight>(parts)) {}

  /// Each message is retransmitted for at most this long, however many tries are left.
  void repeat_for(Duration most) noexcept { repeats_ = most; }

  /// `item` leaves now: keeps a copy. False: there is no room, or no memory. A reply that is refused is lost, so
  /// replies have more room; there are no more of them than requests in the protocol above.
  [[nodiscard]] bool keep(const ItemRef& item, const Sent& sent) noexcept {
    Flight* const flight = flights_.find_or_make(sent.flow);
    HostShares* const places = flight != nullptr ? room(item, *flight, sent) : nullptr;
    if (places == nullptr) return false;
    const HostKey host = host_of(sent.flow);
    const std::size_t bytes = std::max(item->message.footprint(), std::size_t{1});
    if (!bytes_.has_room(host, bytes, item->answers() ? 4 * memory_ : memory_)) return false;
    Kept kept{.item = parts_.bag().copy_of(item),
              .bytes = bytes_.take(host, bytes),
              .place = places->take(host, 1),
              .tries = 1};
    if (!kept.item || !kept.bytes || !kept.place) return false;
    const Events::TimerId timer = parts_.events().set_timer(*timeout_, interval_, Repeat::once, sent);
    if (timer == 0) return false;
    kept.timer = timer;
    kept.until = deadline_after(parts_.events().due(timer) - interval_, repeats_);
    const bool bound = attempt([&] { kept_.bind(sent, std::move(kept)); });
    bound ? flight->sent(sent.number) : parts_.events().cancel_timer(timer);
    return bound;
  }
  /// The peer has acknowledged the message. No effect if it is not kept; so also forget() and timed_out().
  void acknowledged(const Sent& sent) noexcept {
    if (kept_.resolve(sent) == nullptr) return;
    if (Flight* const flight = flights_.find(sent.flow)) flight->answered = true;
    forget(sent);
  }
  void forget(const Sent& sent) noexcept {
    Kept* const kept = kept_.resolve(sent);
    if (kept == nullptr) return;
    parts_.events().cancel_timer(kept->timer);
    kept_.unbind(sent);
    if (Flight* const flight = flights_.find(sent.flow))
      flight->settle([&](std::uint64_t number) { return kept_.resolve({sent.flow, number}) != nullptr; });
  }
  /// The copy. Null: it is not kept.
  [[nodiscard]] ItemRef kept(const Sent& sent) noexcept {
    Kept* const known = kept_.resolve(sent);
    return known != nullptr ? ItemRef(known->item.get()) : ItemRef();
  }
  /// The first number of the flow that may still be sent. 0: not known.
  [[nodiscard]] std::uint64_t first(const Flow& flow) noexcept {
    const Flight* const flight = flights_.find(flow);
    return flight != nullptr ? flight->first() : 0;
  }
  /// Retransmits the message. False: its tries or its time are used up, or there is no memory; it is forgotten.
  [[nodiscard]] bool timed_out(const Sent& sent) noexcept {
    Kept* const kept = kept_.resolve(sent);
    if (kept == nullptr) return true;
    kept->timer = 0;
    if (kept->tries < tries_ && parts_.host().now() < kept->until) {
      const Duration pause = interval_ * (1U << std::min<std::uint64_t>(kept->tries, 3));
      ++kept->tries;
      kept->timer = parts_.events().set_timer(*timeout_, pause, Repeat::once, sent);
      if (kept->timer != 0) {
        parts_.bag().insert(parts_.bag().copy_of(kept->item));
        return true;
      }
    }
    forget(sent);
    return false;
  }

 private:
  struct Kept {
    ItemRef item;              ///< As it was when it left.
    HostShares::Part bytes{};  ///< Of buffers that it takes.
    HostShares::Part place{};
    std::uint64_t tries = 0;
    Events::TimerId timer = 0;
    Time until = Time::max();  ///< No retransmission after that.
  };
  /// Where the message may take a place. Null: the places that it may take are full.
  [[nodiscard]] HostShares* room(const ItemRef& item, const Flight& flight, const Sent& sent) noexcept {
    const auto of = [&](HostShares& places, std::uint64_t all) {
      return places.has_room(host_of(sent.flow), 1, all) ? &places : nullptr;
    };
    if (item->answers())
      return flight.room(sent.number, std::max(window_, Window::kSize / 2)) ? of(replies_, 4 * most_) : nullptr;
    if (!flight.room(sent.number, window_)) return nullptr;
    return flight.answered ? of(to_known_, most_ - to_unknown_.taken())
                           : of(to_unknown_, std::min(most_ / 2, most_ - to_known_.taken()));
  }

  MicroParts parts_;
  const Raisable<Sent>* const timeout_;
  const Duration interval_;
  const std::uint64_t tries_;
  const std::uint64_t most_;
  const std::uint64_t window_;
  const std::size_t memory_;
  Duration repeats_;  ///< For how long a message is sent again at most: its receiver remembers it for longer.
  HostShares bytes_;  ///< Of what is kept. This and the next three outlive `kept_`.
  // Places of what is kept. A host that acknowledges nothing gets its fair share of each only.
  HostShares replies_;
  HostShares to_known_;    ///< Of messages that are no replies, to peers that had acknowledged something,
  HostShares to_unknown_;  ///< and to those that never had.
  Map<Sent, Kept> kept_;
  PeerTable<Flow, Flight> flights_;
};

}  // namespace lrpc::netrpc::composite
