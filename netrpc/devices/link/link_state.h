// Follows a device's link: the rules, without the kernel.
#pragma once

#include <string>

#include "netrpc/devices/arp/rtnetlink.h"
#include "netrpc/devices/device/interface.h"

namespace lrpc::netrpc {

/// What a notice of the kernel has changed.
struct LinkChange {
  bool gone = false;  ///< The link has been removed.
  bool back = false;  ///< There is a link of its name again, with another index.
  bool renamed = false;
  bool went_down = false;
  bool came_up = false;
  bool mtu = false;
  bool ethernet = false;      ///< Its Ethernet address.
  bool address_gone = false;  ///< The host's own address belongs to no link of this machine any more.
  bool address_back = false;
  [[nodiscard]] bool any() const noexcept {
    return gone || back || renamed || went_down || came_up || mtu || ethernet || address_gone || address_back;
  }
};

/// Follows one link. A link is known by its index, so it may be renamed. After its removal the next link with its last
/// name takes its place. Pure: no clock, no system call. Nothing allocates.
class LinkState {
 public:
  /// `own`: the host's own address; not known: it is not followed.
  LinkState(Interface link, HostAddress own) : link_(std::move(link)), own_(own) {}

  LinkChange heard(const rtnetlink::Link& news) noexcept;
  /// Takes the kernel's answer: whether any link has the host's own address.
  LinkChange found_own_address(bool there) noexcept;

  /// Index 0: the link is gone; the rest is what was last known.
  [[nodiscard]] const Interface& link() const noexcept { return link_; }
  [[nodiscard]] HostAddress own() const noexcept { return own_; }
  /// Whether the own address belongs to this machine, as far as is known.
  [[nodiscard]] bool has_own() const noexcept { return has_own_; }

 private:
  Interface link_;
  const HostAddress own_;
  bool up_ = true;
  bool has_own_ = true;
};

/// For the log: one line, in words for the person who runs the host. `name`: the link's before the change.
[[nodiscard]] std::string describe(const LinkChange& change, const std::string& name, const LinkState& now);

}  // namespace lrpc::netrpc
