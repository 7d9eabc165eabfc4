// Notices another machine with this host's address, for graphs without ETH (ETH does so itself).
#pragma once

#include <memory>
#include <utility>

#include "netrpc/devices/arp/arp_sender.h"

namespace lrpc::netrpc {

/// Watches the link that has the host's address at make(). All use is inside the monitor.
class AddressWatch final : private LinkUser {
 public:
  /// Begins as ArpSender::make() does. Null: this process may not open packet sockets, no link with ARP has the
  /// address, or the kernel refuses a resource; then nothing is watched. Blocks until the kernel has answered about its
  /// links.
  static std::unique_ptr<AddressWatch> make(Host& host, UringEngine& engine);
  ~AddressWatch() { watch_->tell_nobody(); }

 private:
  AddressWatch(std::unique_ptr<Asker> asker, std::unique_ptr<LinkWatch> watch, std::unique_ptr<ArpSender> arp)
      : asker_(std::move(asker)), watch_(std::move(watch)), arp_(std::move(arp)) {
    watch_->tell(*this);
  }
  void link_changed(const LinkChange& change) noexcept override { arp_->link_changed(change); }

  const std::unique_ptr<Asker> asker_;  ///< The others use it until they are destroyed.
  const std::unique_ptr<LinkWatch> watch_;
  const std::unique_ptr<ArpSender> arp_;
};

}  // namespace lrpc::netrpc
