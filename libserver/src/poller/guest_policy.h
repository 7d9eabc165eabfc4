// When a poller shares a processor with callers, because they run on all processors. Pure: no system call, no clock.
#pragma once

#include <cstdint>

#include "lrpc/detail/shim/call/distrust.h"
#include "poller_load.h"

namespace lrpc::server {

/// The state machine of a poller that is the guest of one processor after the other.
///
/// If callers run on every processor, none is idle (LRPC §3.4), and each call takes two switches on its caller's own.
/// If a poller takes one processor (its *host*), the callers on the others can exchange with it, which is ten times as
/// quick. Callers on the host wait: their calls are served only once in PollerPolicy::kYieldUs. That pays if the others
/// call often. Each processor is the host in turn.
///
/// For the poller's thread only, except may_begin().
class GuestPolicy {
 public:
  /// Time with one host. A move costs some 60 us: the poller's own, and what callers lose that do not know of it yet.
  static constexpr std::uint64_t kTurnUs = 2'000;
  /// Time of the first turn: what a try in vain costs.
  static constexpr std::uint64_t kTrialUs = 300;
  /// What a call takes that its E-stack serves on the caller's processor: 2.5 to 3.5 us.
  static constexpr std::uint64_t kCallUs = 3;
  /// It stops after this many turns in a row that did not pay: anything may disturb one. It begins with one counted.
  static constexpr unsigned kPoorTurns = 2;
  /// One poller serves 6 calls in a microsecond: with more processors than 6 * kCallUs it cannot pay.
  static constexpr std::uint64_t kMostProcessors = 6 * kCallUs;
  /// Afterwards it does not poll for this long: callers that the guest has moved together find processors of their own
  /// again, before a poller takes one of those for idle.
  static constexpr std::uint64_t kSettleUs = 5'000;

  [[nodiscard]] bool may_begin(shim::Moment now) const noexcept { return back_off_.over(now); }
  void begin(shim::Moment now) noexcept {
    began_ = now.ticks;
    begin_turn(kTrialUs, now);
    poor_turns_ = 1;
  }
  /// Whether the turn is over. `calls`: those served since the last time that this was called.
  [[nodiscard]] bool turn_over(std::uint64_t calls, shim::Moment now) noexcept {
    calls_ += calls;
    return now.since(turn_began_) >= turn_us_;
  }
  /// The turn is over. Whether to go on, with the next host. `processors`: the number of those that callers run on;
  /// without the poller each of them would have a call in kCallUs.
  [[nodiscard]] bool next_turn(std::uint64_t processors, shim::Moment now) noexcept {
    const bool pays = calls_ * kCallUs > now.since(turn_began_) * processors;
    poor_turns_ = pays ? 0 : poor_turns_ + 1;
    begin_turn(kTurnUs, now);
    return poor_turns_ < kPoorTurns;
  }
  /// It is nobody's guest any more.
  void end(shim::Moment now) noexcept { back_off_.ended(now.since(began_), now); }

 private:
  void begin_turn(std::uint64_t us, shim::Moment now) noexcept {
    turn_began_ = now.ticks;
    turn_us_ = us;
    calls_ = 0;
  }

  std::uint64_t began_ = 0;       ///< ticks()
  std::uint64_t turn_began_ = 0;  ///< ticks()
  std::uint64_t turn_us_ = kTrialUs;
  std::uint64_t calls_ = 0;  ///< In this turn.
  unsigned poor_turns_ = 0;  ///< In a row.
  StintBackOff back_off_;
};

}  // namespace lrpc::server
