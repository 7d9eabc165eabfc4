// Groups of hosts: one address that stands for several participants (Bhatti and Schlichting §4.2: group RPC).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "lrpc/detail/shim/result.h"
#include "lrpc/netrpc/address.h"

namespace lrpc::netrpc {

/// A host's own table of groups: the members behind each group address. The addresses mean something on this host only,
/// and never go over the wire. Under the monitor.
class Groups {
 public:
  static constexpr std::size_t kMostMembers = 64;
  /// Groups have the addresses that IP has for them (RFC 1112): 224.0.0.0 to 239.255.255.255.
  [[nodiscard]] static constexpr bool is_group(HostAddress host) noexcept { return host.value >> 28 == 0xe; }

  /// Checks that these can be the members of a group. A pure function. Errors: invalid_argument (more than
  /// kMostMembers; an address twice; an address that is not a host's).
  [[nodiscard]] static Status check(std::vector<HostAddress> members);
  /// Replaces the members of `group`; an empty list removes it. Open sessions keep the members that they have. Errors:
  /// invalid_argument (`group` is not a group's address), and those of check().
  Status set(HostAddress group, std::vector<HostAddress> members);
  /// The members of `group`; empty if it has none. Valid until the next set().
  [[nodiscard]] std::span<const HostAddress> members(HostAddress group) const noexcept;

 private:
  std::map<HostAddress, std::vector<HostAddress>> groups_;
};

}  // namespace lrpc::netrpc
