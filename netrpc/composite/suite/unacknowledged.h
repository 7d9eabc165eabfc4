// What has been sent and not been acknowledged: ACK's side of the sender.
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

/// Keeps each message until it is forgotten, and sends it again with growing pauses, at most `tries` times in all.
/// Under the monitor. Work of each operation: constant, but for the numbers of the flow that have been settled.
class Unacknowledged {
 public:
  /// Of ACK's `parts`, with its options. `timeout`: raised when a message's time is over; timed_out() is to follow.
  Unacknowledged(MicroParts& parts, const Raisable<Sent>* timeout);

  /// Each message for so long at most, however many tries are left.
  void repeat_for(Duration most) noexcept { repeats_ = most; }

  /// `item` leaves now: a copy of it is kept. False: there is no room, or no memory. A reply that is refused is lost,
  /// so there is more room for those: there are no more of them than requests that the protocol above works on.
  [[nodiscard]] bool keep(const ItemRef& item, const Sent& sent) noexcept;
  /// The peer has acknowledged it. No effect if it is not kept: so also of the next two.
  void acknowledged(const Sent& sent) noexcept;
  void forget(const Sent& sent) noexcept;
  /// What is kept of it. Null: nothing.
  [[nodiscard]] ItemRef kept(const Sent& sent) noexcept {
    Kept* const known = kept_.resolve(sent);
    return known != nullptr ? ItemRef(known->item.get()) : ItemRef();
  }
  /// Sends it again. False: it has been sent often enough, and is forgotten.
  [[nodiscard]] bool timed_out(const Sent& sent) noexcept;

 private:
  struct Kept {
    ItemRef item;              ///< As it was when it left,
    HostShares::Part bytes{};  ///< in buffers of so many.
    HostShares::Part place{};
    std::uint64_t tries = 0;
    Events::TimerId timer = 0;
    Time until = Time::max();  ///< Then it is not sent again.
  };
  /// Where it may have a place. Null: nowhere, for there are too many.
  [[nodiscard]] HostShares* room(const ItemRef& item, const Flight& flight, const Sent& sent) noexcept;

  MicroParts parts_;
  const Raisable<Sent>* const timeout_;
  const Duration interval_;
  const std::uint64_t tries_;
  const std::uint64_t most_;
  const std::uint64_t window_;
  const std::size_t memory_;
  Duration repeats_;  ///< For how long a message is sent again at most: its receiver remembers it for longer.
  HostShares bytes_;  ///< Of what is kept. This and the next three outlive it.
  // Places of what is kept. Hosts that acknowledge nothing leave some of each for the others.
  HostShares replies_;
  HostShares to_known_;    ///< Of other messages, to peers that had acknowledged something,
  HostShares to_unknown_;  ///< and to those that never had.
  Map<Sent, Kept> kept_;
  PeerTable<Flow, Flight> flights_;
};

}  // namespace lrpc::netrpc::composite
