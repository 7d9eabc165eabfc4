// When to send ARP packets of our own: the rules, without packets and without a clock.
#pragma once

#include <cstdint>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::arp {

/// Whether this host alone has its address (RFC 5227 "IPv4 Address Conflict Detection"). The address is the kernel's,
/// and in use already: so it is defended once, as §2.4 (b) has it, and never given up. O(1).
class OwnAddress {
 public:
  struct Action {
    bool probe = false;
    bool announce = false;
    bool report = false;
  };

  /// It is new on the link, or the link's Ethernet address is: it is probed for and then announced, as tick() comes.
  void begin() noexcept { step_ = 0; }
  /// Called first after begin(), and then after pause(), until that is zero.
  [[nodiscard]] Action tick(Time now) noexcept;
  [[nodiscard]] Duration pause() const noexcept;
  /// Another machine has sent a packet with this address as its own. Not defended while it is probed for.
  [[nodiscard]] Action claimed(Time now) noexcept;
  /// Somebody else's address is not announced: that would take the messages away from the machine that had it first.
  [[nodiscard]] bool undisputed(Time now) const noexcept { return !claimed_ || now - claimed_at_ >= kReportPause; }

  static constexpr int kProbes = 3;
  static constexpr int kAnnouncements = 2;
  static constexpr Duration kProbePause = std::chrono::seconds(1);
  static constexpr Duration kAnnouncePause = std::chrono::seconds(2);
  static constexpr Duration kDefendPause = std::chrono::seconds(10);
  /// A flood of claims on the link brings about a report a minute.
  static constexpr Duration kReportPause = std::chrono::seconds(60);

 private:
  int step_ = kProbes + kAnnouncements;
  bool claimed_ = false;
  bool reported_ = false;
  Time claimed_at_{};
  Time reported_at_{};
};

/// Whether neighbours are still where ARP once said (RFC 1122 §2.3.2.1: by unicast polls). The kernel does not ask,
/// since it does not see what packet sockets send. A host that is sent to and not heard is polled: twice where it was;
/// then everybody is asked who has its address, ever more seldom. `host` may be any that ARP has resolved.
class Confirmations {
 public:
  enum class Poll : std::uint8_t { none, unicast, broadcast };
  explicit Confirmations(std::uint64_t hash_seed) noexcept : hash_seed_(hash_seed) {}

  /// `host` has been sent messages and not been heard. O(1); what of a host cannot be remembered is not polled.
  [[nodiscard]] Poll doubted(HostAddress host, Time now) noexcept;

  static constexpr unsigned kUnicasts = 2;
  static constexpr Duration kPause = std::chrono::milliseconds(300);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);
  /// Doubts that have ended so long ago begin anew.
  static constexpr Duration kForgotten = std::chrono::seconds(60);
  /// Of all hosts together in kPause.
  static constexpr unsigned kMost = 32;
  static constexpr std::size_t kRemembered = 4096;

 private:
  struct Doubt {
    Time last{};
    unsigned polls = 0;
    Duration pause = kPause;
  };
  const std::uint64_t hash_seed_;
  Map<HostKey, Doubt> doubts_;
  Time since_{};
  unsigned polls_ = 0;  ///< Since then.
};

}  // namespace lrpc::netrpc::arp
