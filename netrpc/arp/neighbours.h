// ARP: the kernel's own, asked over rtnetlink. Is a host on this link, and what is its Ethernet address there?
#pragma once

#include <memory>

#include "lrpc/netrpc/map.h"
#include "netrpc/arp/rtnetlink_requests.h"
#include "netrpc/device/interface.h"
#include "netrpc/engine/uring_engine.h"

namespace lrpc::netrpc {

/// The neighbours on one interface. What has been learnt is kept until the kernel says that it has changed. All use is
/// inside the monitor.
class Neighbours final : private SocketReader {
 public:
  /// Errors: system_error.
  static Result<std::unique_ptr<Neighbours>> make(Host& host, UringEngine& engine, int interface);
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours();

  /// Errors: host_unreachable (behind a gateway, on another interface, this host itself; or it has not answered yet).
  /// Never waits. Where the kernel does not know the address, it is made to ask for it (by an empty UDP datagram to the
  /// discard port: that needs no privilege), at most once in kRetry for one host. When the answer comes the paths have
  /// changed (Peers::path_changes()).
  [[nodiscard]] Errc resolve(HostAddress host, EthernetAddress& ethernet) noexcept;
  /// The same, for who has no other way to the host: waits for the answer inside the monitor for up to kPatience, for at
  /// most one host in kPause, so that nobody can make a graph stand still.
  [[nodiscard]] Errc resolve_waiting(HostAddress host, EthernetAddress& ethernet) noexcept;
  /// Not known: host_unreachable. Never waits.
  [[nodiscard]] Errc resolve_reverse(EthernetAddress ethernet, HostAddress& host) noexcept;
  /// The interface has another index from now on, under which nothing is known yet; 0: there is none, nor any neighbour.
  void use_interface(int index) noexcept;
  /// Another number than before: what was resolved before may be wrong now.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }

 private:
  static constexpr Duration kPatience = std::chrono::milliseconds(20);
  static constexpr Duration kRetry = std::chrono::seconds(1);
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  /// After lost news what is still queued in front of the socket is older than what was lost.
  static constexpr Duration kOldNews = std::chrono::seconds(1);
  /// Hosts remembered; the kernel's table is of this order.
  static constexpr std::size_t kRemembered = 4096;

  Neighbours(Host& host, UringEngine& engine, int interface) : host_(host), engine_(engine), interface_(interface) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;
  void send_failed(int /*error*/) noexcept override {}
  void receive_failed(int error) noexcept override;

  enum class Known : std::uint8_t { no, yes, failed };
  [[nodiscard]] bool on_link(HostAddress host) noexcept;
  [[nodiscard]] Known ask(HostAddress host, EthernetAddress& ethernet) noexcept;
  void nudge(HostAddress host) noexcept;
  void dump() noexcept;
  /// `believed`: else what it says of a host only makes that one be asked for again.
  void learn(std::uint16_t type, std::span<const std::byte> payload, bool believed) noexcept;
  enum class Patience : std::uint8_t { none, some };
  [[nodiscard]] Errc resolve(HostAddress host, EthernetAddress& ethernet, Patience patience) noexcept;
  [[nodiscard]] Known wait_for(HostAddress host, EthernetAddress& ethernet, Time since) noexcept;
  /// Without memory it is asked for again.
  void remember(HostAddress host, const EthernetAddress& ethernet) noexcept;
  void remember_silent(HostAddress host, Time until) noexcept;
  void forget(HostAddress host) noexcept;

  struct HostKey {
    std::uint64_t value = 0;
    [[nodiscard]] std::uint64_t hash() const noexcept { return mix(0x9e3779b97f4a7c15ULL, value); }
    friend bool operator==(HostKey, HostKey) = default;
  };
  Host& host_;
  UringEngine& engine_;
  int interface_;
  rtnetlink::Requests requests_;
  bool watching_ = false;
  SocketId news_;
  Map<HostKey, EthernetAddress> hosts_;
  Map<HostKey, HostAddress> ethernets_;
  Map<HostKey, Time> silent_;  ///< When a host may be asked again.
  std::uint64_t changes_ = 0;
  Time may_wait_{};
  Time may_dump_{};
  Time believes_from_{};  ///< News before this may be old.
};

}  // namespace lrpc::netrpc
