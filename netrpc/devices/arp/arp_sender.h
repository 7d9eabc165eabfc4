// ARP packets of our own, besides the kernel's: to notice another machine with this host's address, and to ask where
// neighbours are to which only packet sockets send. The kernel learns from the answers (neighbours.h).
#pragma once

#include <memory>

#include "netrpc/devices/arp/arp_packet.h"
#include "netrpc/devices/arp/arp_policy.h"
#include "netrpc/devices/engine/uring_engine.h"
#include "netrpc/devices/link/link_watch.h"

namespace lrpc::netrpc {

/// On one link, for the host's own address. All use is inside the monitor.
class ArpSender final : private SocketReader {
 public:
  /// Opens its socket, and begins to probe for the own address when the engine first runs events. Null: this process
  /// may not open packet sockets, or the host has no address of its own. `watch` outlives it. Errors: system_error.
  static Result<std::unique_ptr<ArpSender>> make(Host& host, UringEngine& engine, LinkWatch& watch);
  ~ArpSender() { engine_.remove(socket_); }

  /// The link has another index, another Ethernet address or the own address again, or is up again.
  void link_changed(const LinkChange& change) noexcept;
  /// `neighbour`, last known at `ethernet`, has been sent messages and stays silent: polls it, if a poll is due.
  void doubt(HostAddress neighbour, const EthernetAddress& ethernet) noexcept;

 private:
  ArpSender(Host& host, UringEngine& engine, LinkWatch& watch)
      : host_(host), engine_(engine), watch_(watch), confirmations_(host.hash_seed()), tick_([this] { tick(); }) {}
  void arrived(Message message, std::span<const std::byte> from) noexcept override;

  static constexpr Duration kAskPause = std::chrono::seconds(1);
  static constexpr Duration kOursFor = std::chrono::seconds(10);

  void claimed(const EthernetAddress& sender) noexcept;
  void claimed_by_another(const EthernetAddress& sender) noexcept;
  void begin() noexcept;
  void tick() noexcept;
  void tick_after(Duration pause) noexcept;
  void ask_for(HostAddress host, HostAddress sender, const EthernetAddress& to) noexcept;
  /// RFC 5227 §3: an ARP request, with the own address in both places.
  void announce() noexcept {
    if (watch_.has_own_address()) ask_for(host_.address(), host_.address(), kEthernetBroadcast);
  }

  Host& host_;
  UringEngine& engine_;
  LinkWatch& watch_;
  arp::OwnAddress own_;
  arp::Confirmations confirmations_;
  Event tick_;
  Time began_{};
  EthernetAddress ours_;  ///< Of another link of this machine, as the kernel has said.
  Time ours_until_{};
  Time may_ask_{};
  SocketId socket_;
};

}  // namespace lrpc::netrpc
