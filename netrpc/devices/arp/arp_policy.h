// When to send ARP packets of our own: the rules, without packets and without a clock.
#pragma once

#include <cstdint>
#include <optional>

#include "lrpc/netrpc/clock.h"
#include "lrpc/netrpc/host.h"

namespace lrpc::netrpc::arp {

/// Detects another machine with this host's address (RFC 5227 "IPv4 Address Conflict Detection"). The address is the
/// kernel's, and in use already: so it is defended once, as in §2.4 (b), and never given up. O(1).
class OwnAddress {
 public:
  struct Action {
    bool probe = false;
    bool announce = false;
    bool report = false;
  };

  /// The address is new on the link, or the link's Ethernet address is new: tick() then probes for the address and
  /// announces it.
  void begin() noexcept { step_ = 0; }
  /// Call it after begin(), and then after each pause() until that is zero.
  [[nodiscard]] Action tick(Time now) noexcept;
  [[nodiscard]] Duration pause() const noexcept;
  /// Another machine has sent a packet with this address as its own. The address is not defended while it is probed
  /// for.
  [[nodiscard]] Action claimed(Time now) noexcept;
  /// Whether no other machine has claimed the address lately. If one has, the address is not announced: that would
  /// divert the messages of the machine that had it first.
  [[nodiscard]] bool undisputed(Time now) const noexcept { return !claimed_ || now - *claimed_ >= kReportPause; }

  static constexpr int kProbes = 3;
  static constexpr int kAnnouncements = 2;
  static constexpr Duration kProbePause = std::chrono::seconds(1);
  static constexpr Duration kAnnouncePause = std::chrono::seconds(2);
  static constexpr Duration kDefendPause = std::chrono::seconds(10);
  /// The least time between two reports, for a flood of claims.
  static constexpr Duration kReportPause = std::chrono::seconds(60);

 private:
  int step_ = kProbes + kAnnouncements;
  std::optional<Time> claimed_;   ///< When another machine last claimed the address,
  std::optional<Time> reported_;  ///< and when that was last reported.
};

/// Checks whether neighbours still have the Ethernet addresses that ARP has found (RFC 1122 §2.3.2.1: by unicast
/// polls). The kernel does not check, since it does not see what packet sockets send. A host that is sent messages and
/// stays silent is polled twice at its last address, and then by broadcasts, less and less often. `host` may be any
/// that ARP has resolved.
class Confirmations {
 public:
  enum class Poll : std::uint8_t { none, unicast, broadcast };
  explicit Confirmations(std::uint64_t hash_seed) noexcept : hash_seed_(hash_seed) {}

  /// Call it when `host` has been sent messages and stays silent. O(1). A host that cannot be remembered is not polled.
  [[nodiscard]] Poll doubted(HostAddress host, Time now) noexcept;

  static constexpr unsigned kUnicasts = 2;
  static constexpr Duration kPause = std::chrono::milliseconds(300);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);
  /// So long after the last poll of a host its polls begin anew.
  static constexpr Duration kForgotten = std::chrono::seconds(60);
  /// The most polls of all hosts together in kPause.
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
  unsigned polls_ = 0;  ///< Polls in this period.
};

}  // namespace lrpc::netrpc::arp
