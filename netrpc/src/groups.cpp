#include "lrpc/netrpc/groups.h"

#include <algorithm>
#include <utility>

namespace lrpc::netrpc {

Status Groups::check(std::vector<HostAddress> members) {
  if (members.size() > kMostMembers)
    return Error{Errc::invalid_argument, "a group of " + std::to_string(members.size()) + " members, " +
                                             std::to_string(kMostMembers) + " are the most"};
  std::ranges::sort(members);
  if (const auto twice = std::ranges::adjacent_find(members); twice != members.end())
    return Error{Errc::invalid_argument, "the member " + to_string(*twice) + " is there twice"};
  for (const HostAddress member : members)
    if (!member.known() || is_group(member))
      return Error{Errc::invalid_argument, to_string(member) + " is no host that can belong to a group"};
  return {};
}

Status Groups::set(HostAddress group, std::vector<HostAddress> members) {
  if (!is_group(group))
    return Error{Errc::invalid_argument, to_string(group) + " is no group's address, take one from 224.0.0.0/4"};
  std::ranges::sort(members);
  if (Status sound = check(members); !sound) return sound;
  if (members.empty()) {
    groups_.erase(group);
  } else {
    groups_[group] = std::move(members);
  }
  return {};
}

std::span<const HostAddress> Groups::members(HostAddress group) const noexcept {
  const auto known = groups_.find(group);
  return known == groups_.end() ? std::span<const HostAddress>() : std::span(known->second);
}

}  // namespace lrpc::netrpc
