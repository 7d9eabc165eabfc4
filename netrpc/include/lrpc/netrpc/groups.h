// Groups of hosts: one address that stands for several participants (Bhatti and Schlichting §4.2: group RPC).
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "lrpc/netrpc/address.h"
#include "lrpc/shim/result.h"

namespace lrpc::netrpc {

/// A host's own table of groups: what a group's address stands for is known here, and never goes over the wire. Under
/// the monitor.
class Groups {
 public:
  static constexpr std::size_t kMostMembers = 64;
  /// Groups have the addresses that IP has for them (RFC 1112): 224.0.0.0 to 239.255.255.255.
  [[nodiscard]] static constexpr bool is_group(HostAddress host) noexcept { return host.value >> 28 == 0xe; }

  /// Whether these can be a group's. A pure function. Errors: invalid_argument (more than kMostMembers; one twice; one
  /// that is no host's).
  [[nodiscard]] static Status check(std::vector<HostAddress> members);
  /// From now on `group` stands for `members`, in place of what it did; sessions that are open go on with those they
  /// have. None: for nobody. Errors: invalid_argument (no group's address), and those of check().
  Status set(HostAddress group, std::vector<HostAddress> members);
  /// Empty: it stands for nobody. Valid until the next set().
  [[nodiscard]] std::span<const HostAddress> members(HostAddress group) const noexcept;

 private:
  std::map<HostAddress, std::vector<HostAddress>> groups_;
};

}  // namespace lrpc::netrpc
