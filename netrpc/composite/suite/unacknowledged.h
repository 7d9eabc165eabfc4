// ACK's sender: the messages that have been sent and not been acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lrpc/netrpc/map.h"
#include "netrpc/composite/suite/flight.h"
#include "netrpc/composite/suite/suite.h"

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
  Unacknowledged(MicroParts& parts, const Raisable<Sent>* timeout);

  /// Each message is retransmitted for at most this long, however many tries are left.
  void repeat_for(Duration most) noexcept { repeats_ = most; }

  /// `item` leaves now: keeps a copy. False: there is no room, or no memory. A reply that is refused is lost, so
  /// replies have more room; there are no more of them than requests in the protocol above.
  [[nodiscard]] bool keep(const ItemRef& item, const Sent& sent) noexcept;
  /// The peer has acknowledged the message. No effect if it is not kept; so also forget() and timed_out().
  void acknowledged(const Sent& sent) noexcept;
  void forget(const Sent& sent) noexcept;
  /// The copy. Null: it is not kept.
  [[nodiscard]] ItemRef kept(const Sent& sent) noexcept {
    Kept* const known = kept_.resolve(sent);
    return known != nullptr ? ItemRef(known->item.get()) : ItemRef();
  }
  /// Retransmits the message. False: its tries or its time are used up, or there is no memory; it is forgotten.
  [[nodiscard]] bool timed_out(const Sent& sent) noexcept;

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
  [[nodiscard]] HostShares* room(const ItemRef& item, const Flight& flight, const Sent& sent) noexcept;

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
