// Whether this host alone has its address, for graphs without ETH, which sees to that itself.
#pragma once

#include <memory>

#include "netrpc/devices/arp/arp_sender.h"

namespace lrpc::netrpc {

/// On the link that has the host's address when it is made. All use is inside the monitor.
class AddressWatch final : private LinkUser {
 public:
  /// Begins as ArpSender::make() does. Null: this process may not have packet sockets, the address belongs to no link
  /// that has ARP, or the kernel refuses what is needed: the host does without. Blocks for as long as the kernel needs
  /// to tell of its links.
  static std::unique_ptr<AddressWatch> make(Host& host, UringEngine& engine);
  AddressWatch(const AddressWatch&) = delete;
  AddressWatch& operator=(const AddressWatch&) = delete;
  ~AddressWatch() { watch_->tell_nobody(); }

 private:
  AddressWatch(std::unique_ptr<Asker> asker, std::unique_ptr<LinkWatch> watch, std::unique_ptr<ArpSender> arp);
  void link_changed(const LinkChange& change) noexcept override { arp_->link_changed(change); }

  const std::unique_ptr<Asker> asker_;  ///< The others may ask it until they go.
  const std::unique_ptr<LinkWatch> watch_;
  const std::unique_ptr<ArpSender> arp_;
};

}  // namespace lrpc::netrpc
