// Which domains may have a processor poll for their calls (LRPC §3.4: idle processors spin in the most active domains).
// The policy only: no clock, no system call, no page. allocator_driver.h has those.
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

/// Each tick it gets the counters of every server, the processor time that the kernel measured for it, and the load of
/// the machine. The rules:
///
/// - A poller occupies a processor, and so does its caller. Callers show as load; so a new poller needs a processor
///   that has been mostly idle in the last ticks, and at least one processor has no poller.
/// - The most active domains come first. A domain keeps its poller until it is inactive, its poller is useless (it is
///   switched out, or misses more calls than it gets), more threads want to run than there are processors, or a domain
///   without one has been much more active for two ticks.
/// - Users share: a user that is over its share gives a poller up for another user's domain.
/// - A server's counters are untrusted: increments are capped, and believed only as far as its processor time allows.
///   A server that lies may get a poller that it would not have got, but only within its user's share.
class Allocator {
 public:
  using DomainId = std::uint32_t;

  struct Look {
    DomainId id = 0;
    shim::CountersCopy counters;
    /// Of the server's process since its start, as measured by the kernel.
    std::optional<std::chrono::nanoseconds> processor_time;
  };

  void add(DomainId id, uid_t user);
  void remove(DomainId id);

  /// Decides anew. Domains that are not in `looks` do not change.
  void tick(std::span<const Look> looks, const MachineLoad& load);
  /// Called when the allocator wakes: forgets what happened before. No domain has a ruling until the load is known
  /// again.
  void begin(std::span<const Look> looks);

  /// How many pollers a domain may have. None: there is no ruling, and the domain's own rule applies.
  [[nodiscard]] std::optional<std::uint32_t> ruling(DomainId id) const;
  /// True once no domain has been active for a while: time to sleep.
  [[nodiscard]] bool nothing_to_do() const noexcept { return quiet_ticks_ >= kTicksToSleep; }
  [[nodiscard]] std::uint32_t granted() const noexcept;
  /// Whether more domains have been active recently than may poll.
  [[nodiscard]] bool contended() const noexcept;

  static constexpr std::uint32_t kTicksToSleep = 10;  ///< Without activity anywhere.
  static constexpr std::uint32_t kTicksToLose = 4;    ///< Without activity of the domain, or with a useless poller.
  static constexpr std::uint32_t kTicksToGain = 2;    ///< With activity, and with a known load, before a poller is
                                                      ///< granted.

 private:
  struct Domain {
    uid_t user = 0;
    bool seen = false;  ///< `last` is valid.
    Look last;
    // Of the last tick.
    bool polling = false;
    bool wants = false;
    bool active = false;
    // Over ticks.
    std::optional<bool> granted;
    double score = 0;  ///< Calls per tick, smoothed; see kHandoffWeight.
    std::uint32_t active_ticks = 0;
    std::uint32_t quiet_ticks = 0;
    std::uint32_t bad_ticks = 0;
    std::uint32_t barred_ticks = 0;  ///< To wait after its poller was withdrawn as useless.
    std::uint32_t next_bar = 0;
    std::uint32_t challenge = 0;  ///< Ticks in a row in which it could displace the weakest holder.
  };

  static void take(Domain& domain, const Look& look);
  void note_load(const MachineLoad& load);
  void count_users();
  void withdraw_useless();
  void rule_over_newcomers();
  void relieve_pressure();
  void grant_to_the_most_active();
  void displace();
  void change(Domain& domain, bool granted);
  /// Those domains for which `chosen` holds, the most active ones first.
  template <class Chosen>
  [[nodiscard]] std::vector<Domain*> most_active_first(Chosen chosen);
  [[nodiscard]] std::vector<Domain*> candidates();
  [[nodiscard]] Domain* weakest_holder();
  [[nodiscard]] std::uint32_t most() const noexcept { return processors_ > 0 ? processors_ - 1 : 0; }

  std::map<DomainId, Domain> domains_;
  std::vector<MachineLoad> loads_;  ///< The last few since a grant changed: they show its effect.
  unsigned processors_ = 0;
  double idle_ = 0;
  double running_ = 0;
  std::uint32_t quiet_ticks_ = 0;
  // Of this tick.
  std::map<uid_t, std::uint32_t> held_by_;  ///< How many pollers each user's domains have.
  std::uint32_t share_ = 0;                 ///< What each user with an active domain may hold.
};

}  // namespace lrpc::nameserver
