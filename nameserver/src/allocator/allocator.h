// Which domains may have a processor poll for their calls (LRPC §3.4: idle processors spin in the most active domains).
// The policy alone: no clock, no kernel, no page. allocator_driver.h is what connects it to them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lrpc/detail/shim/binder/allocator_page.h"
#include "lrpc/nameserver.h"

namespace lrpc::nameserver {

/// Fed once a tick with what every server said of itself, how much processor time the kernel saw it use, and how loaded
/// the machine is. The rules:
///
/// - A poller occupies a processor, and so does its caller. What callers use shows as load; so a new poller needs a
///   processor that has been idle for most of the last ticks, and all but one processor at most poll.
/// - The most active go first. One that has a poller keeps it until it is inactive, until it does no good (it is
///   switched out or misses more calls than it gets), until the machine has more to run than processors, or until
///   somebody without one has been much more active for two ticks.
/// - Users share: one that has more than its part gives way to another user's domain.
/// - What a server says is hostile: increments are taken, capped, and believed only as far as its processor time
///   allows. A liar gets a poller that it would not have had, within its user's share.
class Allocator {
 public:
  using DomainId = std::uint32_t;

  struct Look {
    DomainId id = 0;
    shim::CountersCopy counters;
    /// Of the server's process since it began, by the kernel's word.
    std::optional<std::chrono::nanoseconds> processor_time;
  };

  void add(DomainId id, uid_t user);
  void remove(DomainId id);

  /// Decides anew. Domains that are not in `looks` are left as they are.
  void tick(std::span<const Look> looks, const MachineLoad& load);
  /// The allocator wakes: what happened before does not count. No domain has a ruling until the load is known again.
  void begin(std::span<const Look> looks);

  /// Pollers that a domain may have; none: no ruling, its own rule holds.
  [[nodiscard]] std::optional<std::uint32_t> ruling(DomainId id) const;
  /// True once no domain has been active for a while: time to sleep.
  [[nodiscard]] bool nothing_to_do() const noexcept { return quiet_ticks_ >= kTicksToSleep; }
  [[nodiscard]] std::uint32_t granted() const noexcept;
  /// Whether more domains have been active of late than may poll.
  [[nodiscard]] bool contended() const noexcept;

  static constexpr std::uint32_t kTicksToSleep = 10;  ///< Without activity anywhere.
  static constexpr std::uint32_t kTicksToLose = 4;    ///< Without activity of the domain, or of no good.
  static constexpr std::uint32_t kTicksToGain = 2;    ///< Of activity, and of load known, before a poller is granted.

 private:
  struct Domain {
    uid_t user = 0;
    bool seen = false;  ///< `last` means something.
    Look last;
    // Of the last tick.
    bool polling = false;
    bool wants = false;
    bool active = false;
    // Over ticks.
    std::optional<bool> granted;
    double score = 0;  ///< Calls a tick, smoothed, in those that a poller would have made of them.
    std::uint32_t active_ticks = 0;
    std::uint32_t quiet_ticks = 0;
    std::uint32_t bad_ticks = 0;
    std::uint32_t barred_ticks = 0;  ///< To wait after a poller was taken back for no good.
    std::uint32_t next_bar = 0;
    std::uint32_t challenge = 0;  ///< Ticks in a row that it was worth more than the weakest that has one.
  };
  using Entry = std::map<DomainId, Domain>::value_type;

  static void take(Domain& domain, const Look& look);
  void note_load(const MachineLoad& load);
  void count_users();
  void withdraw_useless();
  void rule_over_newcomers();
  void relieve_pressure();
  void grant_to_the_most_active();
  void displace();
  void change(Domain& domain, bool granted);
  [[nodiscard]] std::vector<Entry*> candidates();
  [[nodiscard]] Entry* weakest_holder();
  [[nodiscard]] std::uint32_t most() const noexcept { return processors_ > 0 ? processors_ - 1 : 0; }

  std::map<DomainId, Domain> domains_;
  std::vector<MachineLoad> loads_;  ///< The last few, since a grant last changed: they show what it did.
  unsigned processors_ = 0;
  double idle_ = 0;
  double running_ = 0;
  std::uint32_t quiet_ticks_ = 0;
  // Of this tick.
  std::map<uid_t, std::uint32_t> held_by_;  ///< How many pollers each user's domains have.
  std::uint32_t share_ = 0;                 ///< What each user with an active domain may hold.
};

}  // namespace lrpc::nameserver
